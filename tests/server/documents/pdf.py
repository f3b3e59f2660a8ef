"""PDF files, built object by object."""

from collections.abc import Sequence


def pdf(*pages: str, encrypted: bool = False) -> bytes:
    """Return a PDF with these content streams, one a page; F1 is Helvetica, F2 bold, F3 oblique."""
    fonts = "".join(
        f"/F{number} << /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >> "
        for number, name in enumerate(("Helvetica", "Helvetica-Bold", "Helvetica-Oblique"), start=1)
    )
    first = 3
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    for index, page in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << {fonts}>> >> "
            f"/Contents {first + 2 * index + 1} 0 R >>"
        )
        stream = page.encode("cp1252")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{page}\nendstream")
    trailer = "/Encrypt << /Filter /Standard /V 1 /R 2 /O (a) /U (b) /P -4 >> /ID [(a) (a)]" if encrypted else ""
    return _file(objects, trailer)


def line(text: str, x: float, y: float, size: float = 12, font: int = 1) -> str:
    """Return the operators that show one line."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F{font} {size} Tf {x} {y} Td ({escaped}) Tj ET\n"


def _file(objects: Sequence[str], trailer: str) -> bytes:
    content = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R {trailer}>>\nstartxref\n{len(content)}\n%%EOF\n"
    return content + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode()
