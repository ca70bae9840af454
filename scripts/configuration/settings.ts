/** What each key of the configuration file is for, its bounds, and what it is where it is left out, by its path. */

export interface SettingText {
  readonly text: string;
  /** As it would be written; absent where there is none, or where it depends on something else, which the text says. */
  readonly default?: unknown;
  /** Page and heading beside the reference that has more: `interception.md#in-an-injected-pod`. */
  readonly see?: string;
}

type Texts = Readonly<Record<string, SettingText>>;

/** A path for each key behind `prefix`; the empty one stands for itself. */
function under(prefix: string, texts: Texts): Texts {
  return Object.fromEntries(
    Object.entries(texts).map(([path, text]) => [path === '' ? prefix : `${prefix}.${path}`, text]),
  );
}

const say = (text: string, standard?: unknown): SettingText =>
  standard === undefined ? { text } : { text, default: standard };

const seeing = (see: string, said: SettingText): SettingText => ({ ...said, see });

const UPSTREAM_TIMEOUTS: Texts = {
  '': say('How long the upstream may take.'),
  connect: say('Name resolution, TCP and TLS together.', '5s'),
  response: say("From the request's last byte to the answer's head.", '60s'),
  idle: say(
    'Time without a byte in either direction while a body or a tunnel is open. An upload that stops for this long is answered 408.',
    '5m',
  ),
};

const CA_FILE = seeing(
  'upstreams.md#which-cas-are-trusted',
  say('PEM certificates that are trusted instead of the public ones; followed when the file changes.'),
);
const SERVER_NAME = say("Name for SNI and the certificate, if not the URL's host.");

const UPSTREAM_TLS: Texts = {
  '': say('How TLS to the upstream is verified, and what is shown there.'),
  caFile: CA_FILE,
  certFile: say('PEM certificate that the sidecar shows; keyFile beside it.'),
  keyFile: say('PEM private key of that certificate.'),
  serverName: SERVER_NAME,
};

const EGRESS_PROXY: Texts = {
  '': seeing('networks.md#the-egress-proxy', say('An HTTP proxy for outgoing connections (CONNECT).')),
  url: say('http://host:port'),
  credentialsDir: say('Directory of a mounted Secret with the files username and password.'),
  noProxy: say(
    'What is reached without it: names, .suffix for all names below, addresses, or ranges (10.0.0.0/8).',
    [],
  ),
};

const INJECTION: Texts = {
  header: say('A header.', 'Authorization'),
  scheme: say(
    'The word before the token. If absent, Bearer for Authorization and none for other headers; an empty one is none.',
  ),
  placeholder: say('Text that the app sends in the header, and that the token replaces.'),
  query: say('A query parameter, only for upstreams that take nothing else: servers log URLs.'),
};

const FORWARDING: Texts = {
  credential: say('Name of the credential whose token is sent.', 'default'),
  ...under('inject', {
    '': seeing(
      'token-placement.md',
      say('Where the token goes: one place, or a list. Authorization: Bearer if absent.'),
    ),
    ...INJECTION,
  }),
  ...Object.fromEntries(Object.entries(INJECTION).map(([name, text]) => [`inject[].${name}`, text])),
  existingAuthorization: say(
    "The app's own Authorization, and what it sends where the token goes: replace it, keep it and add no token, or reject the request with 403.",
    'replace',
  ),
  whenTokenUnavailable: say('Without a token a request fails with 503, or passes as it is.', 'fail'),
  retryOn401: say(
    "After a 401 of the upstream, or gRPC's UNAUTHENTICATED, renew the token and send the request once more. At most five renewals at once, then one in 30 s, and fewer if the upstream takes no token.",
    true,
  ),
  ...under('timeouts', UPSTREAM_TIMEOUTS),
  ...under('tls', UPSTREAM_TLS),
  ...under('egressProxy', EGRESS_PROXY),
  protocol: seeing(
    'upstreams.md#which-version-of-http',
    say('Which version of HTTP is spoken to the upstream: h2 is HTTP/2 over TLS, h2c without TLS.', 'auto'),
  ),
};

const KEY_FILES: Texts = {
  certificateFile: say("Name of a certificate's file in dir: its thumbprint names the key."),
  keyId: say("The key's id (kid). If absent, the JWK's own, else the key's thumbprint."),
  algorithm: say("Signature algorithm. If absent, the JWK's own, else the usual one of the key's type."),
};

const CREDENTIAL: Texts = {
  name: say('Its name: 1 to 63 lower-case letters, digits, dashes. It is a metric label.'),
  authUrl: say(
    'Base URL of the provider: the token endpoint is {authUrl}/realms/{realm}/protocol/openid-connect/token.',
  ),
  realm: say('The realm, beside authUrl; refused beside tokenUrl.', 'dx'),
  tokenUrl: seeing(
    'token-requests.md#a-query-in-tokenurl',
    say('The whole URL of the token endpoint. It may have a query.'),
  ),
  issuerUrl: seeing(
    'token-requests.md#the-token-endpoint',
    say('The issuer, whose metadata (OpenID Connect Discovery, RFC 8414) names the token endpoint.'),
  ),
  allowInsecureTokenUrl: say(
    'Allow http to another host, for issuerUrl too: the client secret travels in clear text.',
    false,
  ),
  dir: say(
    'Directory of the mounted Secret: the files client_id and client_secret, or what clientAuth needs.',
    '/var/run/secrets/token-sidecar',
  ),
  clientId: say('The client id, in place of the file client_id.'),
  clientAuth: seeing(
    'token-requests.md#client-authentication',
    say(
      'How the client proves itself. With jwt_bearer and static the default is none.',
      'client_secret_basic',
    ),
  ),
  basicEncoding: say(
    'With client_secret_basic: form encodes both halves before Base64 (RFC 6749 §2.3.1, Keycloak); raw does not.',
    'form',
  ),
  ...under('assertion', {
    '': seeing('token-requests.md#private_key_jwt', say('Settings of private_key_jwt and kubernetes_jwt.')),
    keyFile: say("Name of the private key's file in dir, PEM or JWK.", 'private_key'),
    ...KEY_FILES,
    audience: say("The assertion's aud; the token endpoint's URL if absent."),
    tokenFile: say("With kubernetes_jwt: name of the service account token's file in dir.", 'token'),
  }),
  grant: seeing('token-requests.md#grants', say('How tokens are granted.', 'client_credentials')),
  ...under('jwtBearer', {
    '': seeing('token-requests.md#jwt_bearer', say('Settings of the grant jwt_bearer (RFC 7523).')),
    kind: say('Whose rules the assertion follows.', 'rfc7523'),
    keyFile: say(
      "Name of the private key's file in dir; key.json for google_service_account.",
      'private_key',
    ),
    ...KEY_FILES,
    issuer: say("The assertion's iss; the client id if absent."),
    subject: say(
      'In whose name the token is asked for. If absent, the issuer; with google_service_account nobody.',
    ),
    audience: say("The assertion's aud; the token endpoint's URL if absent."),
    claims: say('Further claims of the assertion, strings.', {}),
    repositories: say('With github_app: repositories that the token is narrowed to.'),
    permissions: say('With github_app: permissions that the token is narrowed to.'),
  }),
  ...under('tokenExchange', {
    '': seeing('token-requests.md#token_exchange', say('Settings of the grant token_exchange (RFC 8693).')),
    subjectTokenFrom: say('Which token is exchanged: a mounted one, or the token of each request.', 'file'),
    subjectTokenFile: say('Name of the file in dir with the token to exchange.', 'subject_token'),
    subjectTokenType: say('Its type, as a short name or a URI; access_token for tokens of requests.', 'jwt'),
    actorTokenFile: say("Name of the file in dir with the actor's token."),
    actorTokenType: say('Its type; jwt if there is an actor token and none is given.'),
    requestedTokenType: say('The type of token to ask for.'),
  }),
  ...under('static', {
    '': seeing(
      'token-requests.md#static',
      say('Settings of the grant static: a token or API key that is mounted.'),
    ),
    tokenFile: say('Name of its file in dir.', 'token'),
  }),
  required: say(
    'The pod is ready once every required credential has its token. With false, only the routes that use it answer 503, and check only warns. The alerts that page, and TokenSidecarTokenUnavailable, leave it out.',
    true,
  ),
  ...under('output', {
    '': seeing(
      'token-placement.md#tokens-for-what-cannot-be-proxied',
      say('Hand the token out: as a file, at an endpoint on loopback, or both.'),
    ),
    file: say('Path of a file that holds the token, whole, while there is one.'),
    mode: say('Permission bits of the file, in octal; 0640 if absent.'),
    group: say("Number of the file's group; the process's own if absent."),
    endpoint: say('Give the token to callers on loopback: see tokenEndpoint.', false),
  }),
  tokenType: seeing(
    'token-requests.md#answers-of-token-endpoints',
    say("any takes tokens without a token_type, or with the provider's own.", 'bearer'),
  ),
  scope: say('Scopes to ask for, separated by spaces.'),
  audience: say('Audience to ask for.'),
  parameters: say(
    'Further parameters of the grant, such as resource; a list is sent as a repeated parameter.',
    {},
  ),
  ...under('tls', {
    '': say('How TLS to the provider is verified.'),
    caFile: CA_FILE,
    serverName: SERVER_NAME,
  }),
  ...under('egressProxy', EGRESS_PROXY),
  ...under('timeouts', {
    '': say('How long getting a token may take.'),
    request: say('One request to the token endpoint, from connecting to the last byte.', '10s'),
    wait: say(
      'How long a request waits without a token, if a grant is in flight or due within a second. Otherwise the answer is 503 token_unavailable at once.',
      '10s',
    ),
  }),
  ...under('renewal', {
    '': say('When the token is renewed.'),
    at: say('Renew after this part of its life.', 0.75),
    jitter: say(
      'Renew earlier by up to this part of its life, at random. After an unscheduled grant, at a random moment of the last three quarters of the wait.',
      0.1,
    ),
    startupJitter: say('Wait up to this long before asking for the first one, at random.', '50ms'),
    minInterval: say('The shortest time between two grants; less than 250ms counts as 250ms.', '1s'),
    recovery: seeing(
      '../capacity.md#the-way-back',
      say(
        'Without a token, the provider is asked at least this often. Rejections (30 s, growing to 10 min) and Retry-After have times of their own. Large fleets raise it.',
        '30s',
      ),
    ),
    defaultLifetime: say('Life of a token that states none.', '5m'),
    zeroLifetime: seeing(
      'token-requests.md#0-seconds',
      say('What `expires_in: 0` means: `endless` for a token without end.', 'refused'),
    ),
  }),
};

const LISTED_HOST: Texts = {
  host: say('A name, or "*.suffix", in quotes, for every name below it. The more specific one comes first.'),
  port: say('Only this port; the well-known ones, 80 and 443, if absent.'),
  allowClearText: say(
    'Let http requests leave in clear text, with the token and a warning at start. Otherwise they leave over TLS, to 443 in place of port 80. Loopback is always allowed.',
  ),
  upgradeToTls: say('The opposite of allowClearText, and its older name.'),
  ...FORWARDING,
};

export const SETTINGS: Texts = {
  listen: say(
    'Where the app sends its requests. Beyond loopback whoever reaches it uses the token.',
    '127.0.0.1:15080',
  ),
  admin: seeing('admin-listener.md', say('The listener for probes, metrics and the status page.')),
  'admin.listen': say('Its address; [::] stands for every address, of IPv4 too.', '[::]:15081'),
  'admin.hosts': say(
    "Public names, such as an Ingress's, by which browsers may come for the status page.",
    [],
  ),
  logLevel: say('The lowest severity that is logged.', 'info'),
  credentials: say('Clients, each with tokens of its own; if absent, one from the environment variables.'),
  ...Object.fromEntries(Object.entries(CREDENTIAL).map(([path, text]) => [`credentials[].${path}`, text])),
  routes: say(
    'Where requests go: the first match wins. If absent, one from the environment variables. A route that an earlier one covers is refused at start.',
  ),
  'routes[].name': say('Its name, by the same rules as that of a credential.'),
  'routes[].match': say('Which requests; all of them if absent.'),
  'routes[].match.host': say(
    'Host of the request, without port, in any case; a dot at its end counts. Any if absent.',
  ),
  'routes[].match.pathPrefix': say(
    'Beginning of the path, by whole segments, as in a Kubernetes Ingress of type Prefix: /a matches /a and /a/x, not /ab.',
    '/',
  ),
  'routes[].upstream': seeing(
    'upstreams.md',
    say(
      'Where they go, with an optional base path. Required, except for the route default if a variable gives it.',
    ),
  ),
  'routes[].stripPrefix': say('Remove the prefix before the base path is added.', false),
  ...Object.fromEntries(Object.entries(FORWARDING).map(([path, text]) => [`routes[].${path}`, text])),
  forwardProxy: seeing(
    'interception.md#the-forward-proxy',
    say('For apps that set HTTP_PROXY; without it such requests are refused.'),
  ),
  'forwardProxy.allow': say('Hosts that get the token, the first match first.'),
  ...Object.fromEntries(
    Object.entries(LISTED_HOST).map(([path, text]) => [`forwardProxy.allow[].${path}`, text]),
  ),
  'forwardProxy.otherHosts': say(
    'Unlisted hosts: deny them with 403 destination_not_allowed, or pass them without a token.',
    'deny',
  ),
  'forwardProxy.connect': seeing(
    'interception.md',
    say(
      'CONNECT to a listed host: deny it; tunnel it without a token; or intercept it, so that its TLS ends here and the token goes in.',
      'deny',
    ),
  ),
  capture: seeing(
    'interception.md#without-a-proxy-the-mode-hosts',
    say('Hosts whose names lead to listeners of the sidecar, by the hosts file of the pod.'),
  ),
  'capture.hosts': say('Each host once, at most 100.'),
  ...Object.fromEntries(
    Object.entries({
      host: say('An exact name.'),
      address: say('Address of loopback where the sidecar listens in its place.'),
      ports: say('Ports where TLS is expected; 443 if neither these nor clearPorts are given.'),
      clearPorts: say('Ports for HTTP in clear text; 80 if neither these nor ports are given.'),
      allowClearText: say('Let what came in clear text leave in clear text, with the token.', false),
      ...FORWARDING,
    }).map(([path, text]) => [`capture.hosts[].${path}`, text]),
  ),
  redirect: seeing(
    'interception.md#by-the-kernel-the-mode-redirect',
    say('Hosts whose connections the kernel redirects here.'),
  ),
  'redirect.port': say('The port on loopback where they arrive.', 15_083),
  'redirect.hosts': say('Hosts that get the token, the first match first; others pass as they are.'),
  ...Object.fromEntries(
    Object.entries(LISTED_HOST).map(([path, text]) => [`redirect.hosts[].${path}`, text]),
  ),
  gateway: seeing(
    'gateway.md',
    say('For the command gateway: how callers from other pods come in, and which may use which route.'),
  ),
  'gateway.listen': say(
    'Where it listens for TLS; [::] stands for every address, of IPv4 too.',
    '[::]:15443',
  ),
  'gateway.tls': say('What the gateway shows its callers.'),
  'gateway.tls.certFile': say(
    'PEM certificate with its chain; read again when it changes. If the new pair cannot be used, the last good one stays.',
  ),
  'gateway.tls.keyFile': say('PEM private key of it, in the same directory.'),
  'gateway.clientCaFile': say(
    'PEM authorities whose client certificates prove callers; read again when the file changes.',
  ),
  'gateway.serviceAccountTokens': say(
    'Callers may prove themselves by projected service account tokens, which are verified with the Kubernetes API.',
  ),
  'gateway.serviceAccountTokens.audience': say(
    'The one audience that these tokens have.',
    'token-sidecar-gateway',
  ),
  'gateway.callers': say(
    'Who may use which routes: the first match decides, and a caller without a match is refused.',
    [],
  ),
  'gateway.callers[].name': say('The name of the entry. It is a metric label.'),
  'gateway.callers[].match': say('Which callers it is for; exactly one of these.'),
  'gateway.callers[].match.serviceAccount': say(
    'namespace/name of the service account whose token the caller shows; namespace/* for all of the namespace.',
  ),
  'gateway.callers[].match.spiffe': say(
    'The SPIFFE id of the certificate, its one URI; with /* at the end, all ids below.',
  ),
  'gateway.callers[].match.certificate': say(
    'A DNS name, in any case, of a certificate without SPIFFE id; of one without DNS names, its one common name as it is.',
  ),
  'gateway.callers[].allowedRoutes': say('Names of routes that these callers may use.', []),
  'gateway.callers[].allowedCredentials': say(
    'Names of credentials: every route that uses one of them is allowed.',
    [],
  ),
  'gateway.callers[].limits': say('Bounds on each caller that matches.'),
  'gateway.callers[].limits.inFlight': say(
    'Requests at once; beyond it 429. A quarter of limits.inFlight if absent.',
  ),
  'gateway.callers[].limits.requestsPerSecond': say(
    'Requests in a second; beyond it 429. No limit if absent.',
  ),
  'gateway.callers[].limits.burst': say(
    'Requests that may come at once after a quiet time; requestsPerSecond if absent.',
  ),
  'gateway.callers[].limits.connections': say(
    "Connections; beyond it 429. If absent, a quarter of limits.connections, or of what the process's descriptors and memory allow.",
  ),
  'gateway.drainDelay': say(
    'How long it accepts new connections after SIGTERM; part of shutdown.drainTimeout.',
    '5s',
  ),
  interception: seeing(
    'interception.md',
    say('For apps whose TLS ends here: the certificates that they trust.'),
  ),
  'interception.directory': say(
    'Directory that gets ca.crt, bundle.pem and truststore.p12.',
    '/var/run/token-sidecar/trust',
  ),
  tokenEndpoint: seeing(
    'token-placement.md#an-endpoint-on-loopback',
    say('Where programs of the pod ask for tokens; needs output.endpoint on a credential.'),
  ),
  'tokenEndpoint.listen': say('Its address, of loopback.', '127.0.0.1:15082'),
  crossSiteRequests: seeing(
    'http.md#cross-site-requests',
    say('Whether to serve requests that the page of another site makes a browser send.', 'allow'),
  ),
  accessLog: seeing(
    'requests.md#access-log',
    say('Which requests leave a line in the log when they end.', 'off'),
  ),
  accessLogSample: say(
    'With accessLog: all, the share of requests without an error that leave a line, from 0 to 1.',
    1,
  ),
  limits: say('Bounds on requests and connections of the app.'),
  'limits.header': say("Bytes of a request's head; beyond it 431.", '64Ki'),
  'limits.headerCount': say('Header fields of a request; beyond it 431.', 200),
  'limits.target': say('Bytes of the target; beyond it 414.', '16Ki'),
  'limits.requestBody': say('Bytes of a body; beyond it 413. No limit if absent.'),
  'limits.replay': say(
    'Bytes of a body that are kept so that its request can be sent again; larger ones are sent once.',
    '64Ki',
  ),
  'limits.inFlight': say('Requests at once; beyond it 503 overloaded.', 4096),
  'limits.connections': say(
    "Connections of the app; beyond it 503 overloaded. By default, and at most, half of the process's descriptors above 384.",
  ),
  'limits.headerTimeout': say(
    'Time in which a head has to arrive; else 400. Over HTTP/2, for every frame but DATA; else the connection takes no further requests.',
    '30s',
  ),
  'limits.keepAliveTimeout': say('Time after which an idle connection of the app is closed.', '10m'),
  'limits.http2': seeing(
    'http.md#what-one-connection-may-hold',
    say('Bounds on each HTTP/2 connection of the app.'),
  ),
  'limits.http2.streams': say('Requests at once; more get REFUSED_STREAM, which clients try again.', 100),
  'limits.http2.streamWindow': say(
    'Bytes of a request body that the app may send ahead of the upstream.',
    '64Ki',
  ),
  'limits.http2.connectionWindow': say(
    'The same for all request bodies together; streams × streamWindow if absent. A smaller one saves memory, but uploads to a slow upstream then hold up others.',
  ),
  shutdown: seeing('reloading.md#shutdown', say('How the sidecar shuts down.')),
  'shutdown.drainTimeout': say(
    "The longest time from SIGTERM to the end; keep it below the pod's grace period.",
    '25s',
  ),
};
