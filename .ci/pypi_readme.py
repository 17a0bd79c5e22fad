"""Copy the sources into a folder, with a README.md that stands alone: `pypi_readme.py FOLDER [SITE]`.

PyPI shows README.md without the files beside it. Links to pages lead to SITE, the address of the built documentation;
links to other files, and all of them where no address is given, become plain words, and pictures are left out.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
PAGE = re.compile(r"docs/([\w/]+)\.md(#.*)?")
PICTURE = re.compile(r"docs/pictures/(\w+\.png)")


def standalone(text: str, site: str = "") -> str:
    """A README whose relative links and pictures are absolute, or gone."""

    def absolute(link: re.Match[str]) -> str:
        is_picture, words, target = link.groups()
        if is_picture:
            picture = PICTURE.fullmatch(target)
            return f"![{words}]({site}/_images/{picture[1]})" if site and picture else ""
        page = PAGE.fullmatch(target)
        return f"[{words}]({site}/{page[1]}.html{page[2] or ''})" if site and page else words

    without_comments = re.sub(r"^<!--.*?-->\n+", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", LINK.sub(absolute, without_comments))


def copy_sources(folder: Path, site: str = "") -> None:
    """Copy what the archives are built from."""
    shutil.copytree(ROOT / "botorch_skewgp", folder / "botorch_skewgp", ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, folder)
    (folder / "README.md").write_text(
        standalone((ROOT / "README.md").read_text(encoding="utf-8"), site), encoding="utf-8"
    )


if __name__ == "__main__":
    copy_sources(Path(sys.argv[1]), *sys.argv[2:3])
