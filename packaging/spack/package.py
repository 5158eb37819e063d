"""ioprism for Spack: see docs/how-to/install.md for where this file goes."""

from spack.package import *

try:  # Spack 1 keeps its build systems in the repository of packages
    from spack_repo.builtin.build_systems.python import PythonPackage
except ImportError:
    pass  # Spack 0.23 and older: spack.package has it


class PyIoprism(PythonPackage):
    """Explain the I/O of HPC jobs: bottlenecks, advice, period, write time and whole machines."""

    git = "file:///path/to/ioprism"  # your checkout

    license("Apache-2.0")

    version("develop", branch="main")

    variant("server", default=False, description="follow running jobs over ZeroMQ")
    variant("dask", default=False, description="read traces on a Dask cluster")
    variant("yaml", default=False, description="rule files in YAML")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling", type="build")
    depends_on("py-click@8.4:8", type=("build", "run"))
    depends_on("py-fsspec@2024.6:", type=("build", "run"))
    depends_on("py-isal@1.7:1", type=("build", "run"))
    depends_on("py-msgpack@1.1:1", type=("build", "run"))
    depends_on("py-msgspec@0.19:0", type=("build", "run"))
    depends_on("py-numpy@2.1:2", type=("build", "run"))
    depends_on("py-polars@2.1:2", type=("build", "run"))
    depends_on("py-rich@13:15", type=("build", "run"))
    depends_on("py-pyzmq@26.2:27", type=("build", "run"), when="+server")
    depends_on("py-dask@2024.8:", type=("build", "run"), when="+dask")
    depends_on("py-distributed@2024.8:", type=("build", "run"), when="+dask")
    depends_on("py-dask-jobqueue@0.8.5:", type=("build", "run"), when="+dask")
    depends_on("py-indexed-gzip@1.9.4:1", type=("build", "run"), when="+dask")
    depends_on("py-pyyaml@6.0.2:6", type=("build", "run"), when="+yaml")
