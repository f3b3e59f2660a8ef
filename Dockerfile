# CPU image of `kvasir serve` with the default model. Build: docker build -t kvasir .   Run: docker run -p 8000:8000 kvasir
#
# Every RUN is a command that works outside a container too, in an empty folder with Python 3.11.

FROM python:3.11-slim AS builder
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/kvasir
# The requirements alone first: as long as they stay the same, a change of the code reuses this layer.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
        > requirements.txt \
    && /opt/kvasir/bin/pip install -c constraints.txt -r requirements.txt
COPY README.md LICENSE kvasir.py setup.py ./
COPY bundle bundle
COPY export export
COPY kernels kernels
COPY loadtest loadtest
COPY model model
COPY server server
# pip compiles the native operators with a compiler that it throws away afterwards. An installation goes through without
# them, an image does not: the second command fails then, as the third does should a requirement ever bring torch along.
RUN /opt/kvasir/bin/pip install --no-deps . \
    && /opt/kvasir/bin/python -I -c "import sys; from kernels import shared_library; sys.exit(not shared_library.FILE.exists())" \
    && /opt/kvasir/bin/python -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is not None)"

FROM python:3.11-slim
# A fixed number, so that volumes and security policies can name it.
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin kvasir
COPY --from=builder /opt/kvasir /opt/kvasir
COPY models/en-de /models/en-de
ENV PATH=/opt/kvasir/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KVASIR_MODEL=/models/en-de
USER 10001:10001
EXPOSE 8000
# 200 when the model is loaded and the server is not draining; urlopen raises for every other status.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('KVASIR_PORT', '8000') + '/health/ready', timeout=2)"]
# Exec form: kvasir is process 1 and gets the SIGTERM that starts the drain.
ENTRYPOINT ["kvasir", "serve"]
CMD ["--host", "0.0.0.0"]
