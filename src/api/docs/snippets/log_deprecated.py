# import log_deprecated
import logging
import urllib.request
from datetime import datetime, timezone
from urllib.parse import urlsplit

logged = set()


class LogDeprecated(urllib.request.BaseHandler):
    def http_response(self, request, response):
        since = response.headers["Deprecation"]
        call = (request.get_method(), urlsplit(request.full_url).path)
        if since and call not in logged:
            logged.add(call)
            logging.getLogger("deprecated").warning(
                "deprecated: %s %s since %s, sunset %s, links %s",
                *call,
                datetime.fromtimestamp(int(since[1:]), timezone.utc).isoformat(),
                response.headers["Sunset"],
                response.headers["Link"],
            )
        return response

    https_response = http_response


urllib.request.install_opener(urllib.request.build_opener(LogDeprecated))
