"""The HTTP face of Allot, and its command line. The only folder that imports fastapi."""
