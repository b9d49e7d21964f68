# Workers, one per visible GPU and as many on the CPU as are asked for. CUDA's libraries and headers come from wheels;
# the driver comes from the host through the NVIDIA container runtime.
ARG PYTHON=python:3.12-slim
FROM ${PYTHON}

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    ALLOT_DATA_DIR=/data \
    NUMBA_CACHE_DIR=/var/cache/allot/numba \
    CUPY_CACHE_DIR=/var/cache/allot/cupy \
    ALLOT_CUBINS_DIR=/opt/allot/cubins \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

WORKDIR /opt/allot
COPY pyproject.toml README.md LICENSE docker/worker.lock ./
COPY app app
COPY workers workers
COPY kernels kernels
COPY client client
# every file of every package has the hash that it had when it was pinned; CUDA kernels are compiled here, without a GPU,
# in a layer that no volume hides
RUN python -m pip install --require-hashes --no-deps --requirement worker.lock \
    && python -m pip install --no-deps --no-build-isolation . \
    && allot warm --cubins \
    && useradd --uid 10001 --create-home allot \
    && install --directory --owner allot --group allot /data /var/cache/allot

USER allot
# so that no first job waits for a compiler
RUN allot warm
VOLUME /data
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["allot", "worker", "--check"]
STOPSIGNAL SIGTERM
CMD ["allot", "worker", "--workers", "0"]
