# The HTTP API alone: no CUDA, no compiler, no root. Workers run from docker/worker.Dockerfile.
ARG PYTHON=python:3.12-slim
FROM ${PYTHON}

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    ALLOT_DATA_DIR=/data

WORKDIR /opt/allot
COPY pyproject.toml README.md LICENSE docker/api.lock ./
COPY app app
COPY workers workers
COPY kernels kernels
COPY client client
# every file of every package has the hash that it had when it was pinned
RUN python -m pip install --require-hashes --no-deps --requirement api.lock \
    && python -m pip install --no-deps --no-build-isolation . \
    && useradd --uid 10001 --create-home allot \
    && install --directory --owner allot --group allot /data

USER allot
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/livez', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["allot", "serve", "--host", "0.0.0.0", "--port", "8000", "--workers", "0"]
