# The service, from its wheel. Versions are those of requirements.lock, checked by their hashes.
FROM python:3.11.14-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock ./
RUN sed -n '/^uv==/,/[^\\]$/p' requirements.lock > /tmp/uv.lock \
    && pip install --no-cache-dir --no-deps --require-hashes -r /tmp/uv.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY migrations migrations
RUN uv venv --quiet /opt/build \
    && uv pip install --quiet --python /opt/build/bin/python --constraint requirements.lock hatchling \
    && uv build --quiet --python /opt/build/bin/python --wheel --no-build-isolation --out-dir /dist
RUN uv venv --quiet /opt/toolfault \
    && uv pip install --quiet --python /opt/toolfault/bin/python --constraint requirements.lock \
        --compile-bytecode "toolfault[server] @ file://$(echo /dist/toolfault-*.whl)"

FROM python:3.11.14-slim-bookworm
RUN groupadd --gid 10001 toolfault \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/toolfault --create-home toolfault \
    && install --directory --owner toolfault --group toolfault /run/tokens
COPY --from=build /opt/toolfault /opt/toolfault
ENV PATH=/opt/toolfault/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TOOLFAULT_DATA_DIR=/var/lib/toolfault
USER 10001:10001
EXPOSE 4317 4318 8700
ENTRYPOINT ["toolfault"]
CMD ["up"]
