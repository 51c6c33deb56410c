"""The stored tables of results/ go into the wheel, where pages and exercises find them."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class _WithTables(build_py):
    """Also copy results/*.json; an editable installation reads them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        tables = Path(self.build_lib) / "conceptnb" / "results" / "tables"
        self.mkpath(str(tables))
        for table in sorted(Path(__file__).with_name("results").glob("*.json")):
            self.copy_file(str(table), str(tables / table.name))


setup(cmdclass={"build_py": _WithTables})
