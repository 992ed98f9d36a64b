// An agent that is not ours, on the OpenTelemetry JavaScript SDK. It reports a failed call of one tool
// with the record it documents (`toolfault.*`), and one of another by the semantic conventions alone.
// Usage: node foreign_agent.mjs ENDPOINT proto|http SERVICE REFERENCE
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { SeverityNumber } from "@opentelemetry/api-logs";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";

const [endpoint, encoding, service, reference] = process.argv.slice(2);
const { OTLPTraceExporter } = await import(`@opentelemetry/exporter-trace-otlp-${encoding}`);
const { OTLPLogExporter } = await import(`@opentelemetry/exporter-logs-otlp-${encoding}`);

const resource = resourceFromAttributes({ "service.name": service, "deployment.environment.name": "test" });
const spans = new BasicTracerProvider({
  resource,
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }))],
});
const logs = new LoggerProvider({
  resource,
  processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${endpoint}/v1/logs` }) })],
});

const tracer = spans.getTracer("foreign");
const call = (tool, error, record) => {
  const span = tracer.startSpan(`execute_tool ${tool}`, {
    kind: SpanKind.INTERNAL,
    attributes: {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool,
      "gen_ai.conversation.id": `c-${service}`,
      "error.type": error,
      ...record,
    },
  });
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
  return span;
};

call("list_slots", "TimeoutError", {});
const span = call("book_meeting", "UNAVAILABLE", {
  "toolfault.outcome": "failed",
  "toolfault.code": "UNAVAILABLE",
  "toolfault.reason": "upstream_gone",
  "toolfault.effect": "unknown",
  "toolfault.attempts": 2,
  "toolfault.reference_id": reference,
});
logs.getLogger("foreign").emit({
  eventName: "toolfault.log",
  severityNumber: SeverityNumber.WARN,
  body: "the calendar did not answer",
  attributes: { "toolfault.reference_id": reference },
  context: trace.setSpan(ROOT_CONTEXT, span),
});
await spans.forceFlush();
await logs.forceFlush();
await spans.shutdown();
await logs.shutdown();
