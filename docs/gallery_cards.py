"""Make cards of the items of the page `gallery`: each shows the first picture of the page, or section, that it links.

The pictures are those that pages made when they were executed, so that none is stored. A link to a page without a
picture is a warning.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

PAGE = "gallery"
logger = logging.getLogger(__name__)


def add_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put a picture before the words of each item."""
    if docname != PAGE:
        return
    for items in doctree.findall(nodes.bullet_list):
        items["classes"].append("gallery")
        for item in items.children:
            link = next(item.findall(nodes.reference))
            picture = picture_of(app.env, link["refuri"])
            if picture is None:
                logger.warning("%s has no picture for the gallery", link["refuri"], location=doctree)
                continue
            picture["alt"] = link.astext()
            framed = nodes.reference("", "", picture, refuri=link["refuri"], internal=True)
            item.insert(0, nodes.paragraph("", "", framed, classes=["picture"]))


def picture_of(env: BuildEnvironment, address: str) -> nodes.image | None:
    """The first picture of a page, or of its section, as a node of its own."""
    page, _, anchor = address.partition("#")
    part = env.get_doctree(page.removesuffix(".html"))
    if anchor:
        part = next(section for section in part.findall(nodes.section) if anchor in names_of(section))
    images = list(part.findall(nodes.image))
    return images[0].deepcopy() if images else None


def names_of(section: nodes.section) -> list[str]:
    """The anchors of a section, those of its words among them."""
    return [*section["ids"], section.get("slug", "")]


def again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The gallery is written in every build, as any picture may be new."""
    return [PAGE]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_css_file("gallery.css")
    app.connect("env-updated", again)
    app.connect("doctree-resolved", add_pictures)
