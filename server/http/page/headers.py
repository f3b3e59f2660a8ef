"""Security headers of the pages: a browser runs no script but theirs, and shows them in no frame."""


def security_headers(style: str = "'self'", image: str = "'self'", has_trusted_types: bool = True) -> dict[str, str]:
    """Return the headers of a page with these sources of styles and images."""
    policy = [
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {style}",
        f"img-src {image}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    if has_trusted_types:
        policy += ["require-trusted-types-for 'script'", "trusted-types 'none'"]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        # Cached, but revalidated each time: an updated server must not be mixed with old files.
        "Cache-Control": "no-cache",
    }
