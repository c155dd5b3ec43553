"""Define Bokeh's hooks for the start and the end of the server and its sessions; Bokeh runs this script once."""

from bnnviz_app import bokeh_fixes
from bnnviz_app.server import (
    on_server_loaded,
    on_server_unloaded,
    on_session_created,
    on_session_destroyed,
    process_request,
)

bokeh_fixes.apply()  # before the server is made, which `panel serve app` does after this script

__all__ = ["on_server_loaded", "on_server_unloaded", "on_session_created", "on_session_destroyed", "process_request"]
