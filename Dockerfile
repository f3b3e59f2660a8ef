# Image of `kvasir serve` with the default model, for CPUs, or for NVIDIA GPUs with --build-arg DEVICE=cuda.
# Build: docker build -t kvasir .
# Run:   docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -e KVASIR_REQUIRE_KEYS=false kvasir
#
# Every RUN is a command that works outside a container too, in an empty folder with Python 3.11.

ARG DEVICE=cpu

FROM python:3.11-slim AS builder
ARG DEVICE
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/kvasir && python -m venv /opt/build
# The requirements alone first: as long as they stay the same, a change of the code reuses this layer. pip rejects a
# wheel whose hash is not in the file. The compiler of the native operators stays in the environment of the build.
COPY deploy/requirements.txt deploy/requirements-build.txt ./
RUN /opt/build/bin/pip install --require-hashes -r requirements-build.txt \
    && /opt/kvasir/bin/pip install --require-hashes -r requirements.txt
COPY pyproject.toml constraints.txt ./
# The two packages of ONNX Runtime own the same folder. CUDA 13 and cuDNN 9 come with pip, some 3 GB, without hashes.
RUN if [ "$DEVICE" = cuda ]; then \
        python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['gpu'], sep='\n')" > gpu.txt \
        && /opt/kvasir/bin/pip uninstall -y onnxruntime \
        && /opt/kvasir/bin/pip install -c constraints.txt -r gpu.txt; \
    fi
COPY README.md LICENSE kvasir.py kvasir_commands.py setup.py ./
COPY bundle bundle
COPY export export
COPY kernels kernels
COPY library library
COPY loadtest loadtest
COPY model model
COPY server server
# An installation goes through without native operators, an image does not: the second command fails then, as the third
# does should a requirement ever bring torch along.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && /opt/kvasir/bin/pip install --no-deps wheels/*.whl \
    && /opt/kvasir/bin/python -I -c "import sys; from kernels import shared_library; sys.exit(not shared_library.FILE.exists())" \
    && /opt/kvasir/bin/python -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is not None)"

FROM python:3.11-slim
ARG DEVICE
# A fixed number, so that volumes and security policies can name it.
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin kvasir
COPY --from=builder /opt/kvasir /opt/kvasir
COPY models/en-de /models/en-de
# Without keys, the server does not listen on all addresses unless KVASIR_REQUIRE_KEYS is false. The variables of NVIDIA
# are for its Container Toolkit. Nothing is written outside /tmp: the root can be read-only.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PATH=/opt/kvasir/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KVASIR_DEVICE=$DEVICE \
    KVASIR_HOST=0.0.0.0 \
    KVASIR_REQUIRE_KEYS=true \
    KVASIR_MODEL=/models/en-de
USER 10001:10001
EXPOSE 8000
# 200 when the model is loaded and the server is not draining; urlopen raises for every other status.
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('KVASIR_PORT', '8000') + '/health/ready', timeout=2)"]
# Exec form: kvasir is process 1 and gets the SIGTERM that starts the drain.
ENTRYPOINT ["kvasir", "serve"]
