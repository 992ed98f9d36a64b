// A dashboard as Grafana's own types have it. Enumerations are written as the texts they stand for.
import type { AnnotationQuery, Dashboard, FieldConfig, Panel, RowPanel, VariableModel } from "./node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen";
import type { FieldConfig as HeatmapField, Options as HeatmapOptions } from "./node_modules/@grafana/schema/dist/types/raw/composable/heatmap/panelcfg/x/types.gen";
import type { Options as StatOptions } from "./node_modules/@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen";
import type { FieldConfig as TimelineField, Options as TimelineOptions } from "./node_modules/@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen";
import type { FieldConfig as TableField, Options as TableOptions } from "./node_modules/@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen";
import type { FieldConfig as SeriesField, Options as SeriesOptions } from "./node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen";

type Json<T> = T extends string ? `${T}` : T extends (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;

// Queries belong to the data sources, whose types are not published: these are the keys they read.
type Source = { type: string; uid: string };
type PromQuery = {
  refId: string; datasource: Source; expr: string; legendFormat: string; editorMode: "code";
  format: "time_series" | "table" | "heatmap"; range: boolean; instant: boolean; exemplar: boolean;
};
type SqlQuery = { refId: string; datasource?: Source; rawSql: string; rawQuery: true; format: "table"; editorMode: "code" };

type Link = { title: string; url: string; targetBlank?: boolean };
type Property<Custom> =
  | { [K in keyof Custom & string]: { id: `custom.${K}`; value: Custom[K] } }[keyof Custom & string]
  | { [K in keyof Json<FieldConfig> & string]: { id: K; value: K extends "links" ? Link[] : Json<FieldConfig>[K] } }[keyof Json<FieldConfig> & string];
type Fields<Custom> = {
  defaults: Omit<Json<FieldConfig>, "custom" | "links"> & { custom?: Custom; links?: Link[] };
  overrides: { matcher: { id: "byName" | "byRegexp"; options: string }; properties: Property<Custom>[] }[];
};
type Of<Type extends string, Options, Custom> =
  Omit<Json<Panel>, "type" | "options" | "fieldConfig" | "targets" | "datasource" | "title" | "description">
  & { type: Type; title: string; description: string; datasource: Source; targets: (PromQuery | SqlQuery)[] }
  & { options: Json<Options>; fieldConfig: Fields<Partial<Json<Custom>>> };

type AnyPanel =
  | Of<"stat", StatOptions, object>
  | Of<"timeseries", SeriesOptions, SeriesField>
  | Of<"table", TableOptions, TableField>
  | Of<"state-timeline", TimelineOptions, TimelineField>
  | Of<"heatmap", HeatmapOptions, HeatmapField>
  | Json<RowPanel>;

type Annotation =
  | (Omit<Json<AnnotationQuery>, "target"> & { target: SqlQuery })
  | (Omit<Json<AnnotationQuery>, "target"> & { expr: string; step: string; titleFormat: string; textFormat: string; tagKeys: string });

// The published types have enumerations of numbers for these.
type Variable = Omit<Json<VariableModel>, "hide" | "refresh" | "sort" | "query"> & {
  hide: 0 | 1 | 2; refresh: 0 | 1 | 2; sort?: 0 | 1 | 2; definition?: string;
  query: string | { query: string; qryType: 1; refId: string };
};

export type Page = Omit<Json<Dashboard>, "panels" | "annotations" | "templating" | "graphTooltip"> & {
  graphTooltip: 0 | 1 | 2;
  panels: AnyPanel[];
  annotations: { list: Annotation[] };
  templating: { list: Variable[] };
};
