"""Django OAuth Toolkit, served at PORT of loopback, with the clients that CLIENTS names as JSON."""

import json
import os
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    SECRET_KEY="of these tests alone",
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    # The usual one takes a second for each look at a secret.
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    USE_TZ=True,
    OAUTH2_PROVIDER={
        "SCOPES": {"read": "Read", "write": "Write", "introspection": "Introspect"},
        "DEFAULT_SCOPES": ["read"],
        "ACCESS_TOKEN_EXPIRE_SECONDS": int(os.environ["TOKEN_SECONDS"]),
        "OIDC_ENABLED": True,
        "OIDC_RSA_PRIVATE_KEY": os.environ["SIGNING_KEY"],
    },
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402

urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, *_):
        pass


call_command("migrate", verbosity=0)
for client in json.loads(os.environ["CLIENTS"]):
    Application.objects.create(
        name=client["id"],
        client_id=client["id"],
        client_secret=client["secret"],
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )
server = make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), Server, Handler)
print("serving", flush=True)
server.serve_forever()
