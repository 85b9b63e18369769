"""What tests of NVIDIA GPUs need, and skip without."""

from __future__ import annotations

import pytest

from smelt.backends.cuda import driver, libraries
from smelt.backends.cuda.compiler import nvrtc_library
from smelt.ir.errors import DeviceError


def _works(load: object) -> bool:
    assert callable(load)
    try:
        load()
    except DeviceError:
        return False
    return True


NVRTC_IS_HERE = _works(nvrtc_library)
needs_nvrtc = pytest.mark.skipif(not NVRTC_IS_HERE, reason="NVRTC is not installed")
needs_gpu = pytest.mark.skipif(not _works(driver.enter), reason="there is no NVIDIA GPU")
needs_cublas = pytest.mark.skipif(libraries.load("cublasLt") is None, reason="cuBLASLt is not installed")
needs_cudnn = pytest.mark.skipif(
    libraries.load("cublasLt") is None or libraries.load("cudnn") is None, reason="cuDNN is not installed"
)
needs_cufft = pytest.mark.skipif(libraries.load("cufft") is None, reason="cuFFT is not installed")
needs_cusolver = pytest.mark.skipif(libraries.load("cusolver") is None, reason="cuSOLVER is not installed")
