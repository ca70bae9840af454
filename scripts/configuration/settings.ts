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
    'Time without a byte in either direction while a body or a tunnel is open; for an upload then 408.',
    '5m',
  ),
};

const CA_FILE = seeing(
  'upstreams.md#which-cas-are-trusted',
  say('PEM certificates that are trusted instead of the public ones; followed when changed.'),
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
  credentialsDir: say('Mounted Secret with the files username and password.'),
  noProxy: say(
    'What is reached without it: names, .suffix for names below, addresses, ranges (10.0.0.0/8).',
    [],
  ),
};

const INJECTION: Texts = {
  header: say('A header.', 'Authorization'),
  scheme: say(
    'The word before the token, empty for none. If absent, Bearer for Authorization, none for other headers.',
  ),
  placeholder: say("Text in the app's header that the token replaces."),
  query: say('A query parameter, if nothing else is taken: servers log URLs.'),
};

const FORWARDING: Texts = {
  credential: say('Name of the credential whose token is sent.', 'default'),
  ...under('inject', {
    '': seeing('token-placement.md', say('Where the token goes. Authorization: Bearer if absent.')),
    ...INJECTION,
  }),
  ...Object.fromEntries(Object.entries(INJECTION).map(([name, text]) => [`inject[].${name}`, text])),
  existingAuthorization: say(
    'What the app sends in Authorization, or where the token goes: replace it, keep it and add no token, or reject the request with 403.',
    'replace',
  ),
  whenTokenUnavailable: say('Without a token a request fails with 503, or passes as it is.', 'fail'),
  retryOn401: say(
    "After a 401, or gRPC's UNAUTHENTICATED, renew the token and send the request once more. At most five renewals at once, then one in 30 s, and fewer if the upstream takes no token.",
    true,
  ),
  ...under('timeouts', UPSTREAM_TIMEOUTS),
  ...under('tls', UPSTREAM_TLS),
  ...under('egressProxy', EGRESS_PROXY),
  protocol: seeing(
    'upstreams.md#which-version-of-http',
    say('HTTP to the upstream: h2 is HTTP/2 over TLS, h2c without TLS.', 'auto'),
  ),
};

const KEY_FILES: Texts = {
  certificateFile: say("Certificate's file in dir: its thumbprint names the key."),
  keyId: say("The key's id (kid). If absent, the JWK's own, else the key's thumbprint."),
  algorithm: say("If absent, the JWK's own, else the usual one of the key's type."),
};

const CREDENTIAL: Texts = {
  name: say('1 to 63 lower-case letters, digits, dashes: a metric label.'),
  authUrl: say('Base URL; the token endpoint is {authUrl}/realms/{realm}/protocol/openid-connect/token.'),
  realm: say('For authUrl; refused beside tokenUrl.', 'dx'),
  tokenUrl: seeing(
    'token-requests.md#a-query-in-tokenurl',
    say('URL of the token endpoint, perhaps with a query.'),
  ),
  issuerUrl: seeing(
    'token-requests.md#the-token-endpoint',
    say('Issuer, whose metadata (OpenID Connect Discovery, RFC 8414) names the token endpoint.'),
  ),
  allowInsecureTokenUrl: say(
    'Allow http to another host, for issuerUrl too: the client secret travels in clear text.',
    false,
  ),
  dir: say(
    'The mounted Secret: files client_id and client_secret, or what clientAuth needs.',
    '/var/run/secrets/token-sidecar',
  ),
  clientId: say('The client id, in place of the file client_id.'),
  clientAuth: seeing(
    'token-requests.md#client-authentication',
    say('How the client proves itself; none by default with jwt_bearer and static.', 'client_secret_basic'),
  ),
  basicEncoding: say(
    'For client_secret_basic: form encodes both halves before Base64 (RFC 6749 §2.3.1, Keycloak).',
    'form',
  ),
  ...under('assertion', {
    '': seeing('token-requests.md#private_key_jwt', say('For private_key_jwt and kubernetes_jwt.')),
    keyFile: say("Private key's file in dir, PEM or JWK.", 'private_key'),
    ...KEY_FILES,
    audience: say("The assertion's aud; the token endpoint's URL if absent."),
    tokenFile: say("For kubernetes_jwt: the token's file in dir.", 'token'),
  }),
  grant: seeing('token-requests.md#grants', say('How tokens are granted.', 'client_credentials')),
  ...under('jwtBearer', {
    '': seeing('token-requests.md#jwt_bearer', say('For jwt_bearer (RFC 7523).')),
    kind: say('Whose rules the assertion follows.', 'rfc7523'),
    keyFile: say("Private key's file in dir; key.json for google_service_account.", 'private_key'),
    ...KEY_FILES,
    issuer: say("The assertion's iss; the client id if absent."),
    subject: say('For whom the token is. If absent, the issuer; with google_service_account nobody.'),
    audience: say("The assertion's aud; the token endpoint's URL if absent."),
    claims: say('Further claims of the assertion, strings.', {}),
    repositories: say('For github_app: repositories that the token is narrowed to.'),
    permissions: say('For github_app: permissions that the token is narrowed to.'),
  }),
  ...under('tokenExchange', {
    '': seeing('token-requests.md#token_exchange', say('For token_exchange (RFC 8693).')),
    subjectTokenFrom: say('What is exchanged: a mounted token, or that of each request.', 'file'),
    subjectTokenFile: say('File in dir with the token to exchange.', 'subject_token'),
    subjectTokenType: say('Its type, as a short name or a URI; access_token for tokens of requests.', 'jwt'),
    actorTokenFile: say("File in dir with the actor's token."),
    actorTokenType: say('Its type; jwt if absent.'),
    requestedTokenType: say('The type of token to ask for.'),
  }),
  ...under('static', {
    '': seeing('token-requests.md#static', say('A mounted token or API key.')),
    tokenFile: say('Its file in dir.', 'token'),
  }),
  required: say(
    'Whether the pod is ready only with its token. If not, only its routes answer 503, check only warns, and alerts that page, and TokenSidecarTokenUnavailable, leave it out.',
    true,
  ),
  ...under('output', {
    '': seeing(
      'token-placement.md#tokens-for-what-cannot-be-proxied',
      say('Hand the token out, in a file or at an endpoint on loopback.'),
    ),
    file: say('File that holds the token while there is one.'),
    mode: say('Its permission bits, in octal; 0640 if absent.'),
    group: say("Its group; the process's own if absent."),
    endpoint: say('Give the token to callers on loopback: see tokenEndpoint.', false),
  }),
  tokenType: seeing(
    'token-requests.md#answers-of-token-endpoints',
    say("any takes tokens without a token_type, or with the provider's own.", 'bearer'),
  ),
  proofOfPossession: seeing(
    '../how-to/bind-tokens.md',
    say(
      'Whether tokens are bound to a key (RFC 9449), so that a stolen one is of no use: dpop or none.',
      'none',
    ),
  ),
  ...under('dpop', {
    '': say('Settings of proofOfPossession: dpop.'),
    keyFile: say(
      "Name of the key's file in dir, PEM or JWK: ES256, ES384, EdDSA, RS256 or PS256. If absent, the process makes a key of its own.",
    ),
    allowBearer: say(
      'Take a token of type Bearer, which the provider has not bound, and send it without a proof.',
      false,
    ),
  }),
  scope: say('Scopes to ask for, separated by spaces.'),
  audience: say('Audience to ask for.'),
  parameters: say('Further parameters of the grant, such as resource; a list is sent as repeated ones.', {}),
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
      'How long a request waits for a grant that is in flight or due within a second. Otherwise it gets 503 token_unavailable at once.',
      '10s',
    ),
  }),
  ...under('renewal', {
    '': say('When the token is renewed.'),
    at: say('Renew after this part of its life.', 0.75),
    jitter: say(
      'Renew earlier by up to this part of its life, at random; after an unscheduled grant, at random within the last three quarters of the wait.',
      0.1,
    ),
    startupJitter: say('Wait up to this long before the first grant, at random.', '50ms'),
    minInterval: say('Shortest time between two grants; less than 250ms counts as 250ms.', '1s'),
    recovery: seeing(
      '../capacity.md#the-way-back',
      say(
        'Without a token, the provider is asked at least this often, save after rejections (30 s, growing to 10 min) and Retry-After. Large fleets raise it.',
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
  host: say('A name, or "*.suffix", in quotes, for names below it. The more specific one comes first.'),
  port: say('Only this port; 80 and 443 if absent.'),
  allowClearText: say(
    'Let http requests leave in clear text, with the token. Otherwise they leave over TLS, to 443 in place of port 80. Loopback is always allowed.',
  ),
  upgradeToTls: say('The opposite of allowClearText, and its older name.'),
  ...FORWARDING,
};

export const SETTINGS: Texts = {
  listen: say(
    'Where the app sends its requests. Beyond loopback whoever reaches it uses the token.',
    '127.0.0.1:15080',
  ),
  admin: seeing('admin-listener.md', say('Listener for probes, metrics and the status page.')),
  'admin.listen': say('Its address; [::] stands for every address, of IPv4 too.', '[::]:15081'),
  'admin.hosts': say("Public names of the status page for browsers, such as an Ingress's.", []),
  logLevel: say('The lowest severity that is logged.', 'info'),
  credentials: say('Clients with tokens; if absent, one from variables.'),
  ...Object.fromEntries(Object.entries(CREDENTIAL).map(([path, text]) => [`credentials[].${path}`, text])),
  routes: say(
    'Where requests go: the first match wins, and a route that an earlier one covers is refused. If absent, one from variables.',
  ),
  'routes[].name': say('Its name, by the same rules as that of a credential.'),
  'routes[].match': say('Which requests; all of them if absent.'),
  'routes[].match.host': say('Host, without port, in any case; a dot at its end counts. Any if absent.'),
  'routes[].match.pathPrefix': say(
    'Beginning of the path, by whole segments: /a matches /a and /a/x, not /ab.',
    '/',
  ),
  'routes[].upstream': seeing(
    'upstreams.md',
    say(
      'Where they go, with an optional base path. Required, unless a variable gives it to the route default.',
    ),
  ),
  'routes[].stripPrefix': say('Remove the prefix before the base path is added.', false),
  ...Object.fromEntries(Object.entries(FORWARDING).map(([path, text]) => [`routes[].${path}`, text])),
  forwardProxy: seeing(
    'interception.md#the-forward-proxy',
    say('For apps with HTTP_PROXY, which are refused without it.'),
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
      'CONNECT to a listed host: deny it, tunnel it without a token, or intercept its TLS to add the token.',
      'deny',
    ),
  ),
  capture: seeing(
    'interception.md#without-a-proxy-the-mode-hosts',
    say("Hosts that the pod's hosts file leads to the sidecar."),
  ),
  'capture.hosts': say('Each host once, at most 100.'),
  ...Object.fromEntries(
    Object.entries({
      host: say('An exact name.'),
      address: say('Address of loopback where the sidecar listens in its place.'),
      ports: say('Ports for TLS; 443 if neither these nor clearPorts are given.'),
      clearPorts: say('Ports for clear text; 80 if neither these nor ports are given.'),
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
  gateway: seeing('gateway.md', say('For the command gateway: which callers may use which route.')),
  'gateway.listen': say(
    'Where it listens for TLS; [::] stands for every address, of IPv4 too.',
    '[::]:15443',
  ),
  'gateway.tls': say('What the gateway shows its callers.'),
  'gateway.tls.certFile': say(
    'PEM certificate with its chain, followed when changed. If the new pair cannot be used, the last good one stays.',
  ),
  'gateway.tls.keyFile': say('PEM private key of it, in the same directory.'),
  'gateway.clientCaFile': say(
    'PEM authorities whose client certificates prove callers; followed when changed.',
  ),
  'gateway.serviceAccountTokens': say(
    'Projected service account tokens prove callers, too, by the Kubernetes API.',
  ),
  'gateway.serviceAccountTokens.audience': say(
    'The one audience that these tokens have.',
    'token-sidecar-gateway',
  ),
  'gateway.callers': say('Who may use which routes: the first match decides, and no match is refused.', []),
  'gateway.callers[].name': say('A metric label.'),
  'gateway.callers[].match': say('Which callers it is for; exactly one of these.'),
  'gateway.callers[].match.serviceAccount': say(
    "namespace/name of the caller's service account; namespace/* for all.",
  ),
  'gateway.callers[].match.spiffe': say(
    'The SPIFFE id of the certificate, its one URI; with /* at the end, all ids below.',
  ),
  'gateway.callers[].match.certificate': say(
    'A DNS name, in any case, of a certificate without SPIFFE id; without DNS names, its one common name as it is.',
  ),
  'gateway.callers[].allowedRoutes': say('Names of routes that they may use.', []),
  'gateway.callers[].allowedCredentials': say('Names of credentials whose routes they may use.', []),
  'gateway.callers[].limits': say('Bounds on each caller that matches.'),
  'gateway.callers[].limits.inFlight': say(
    'Requests at once; beyond it 429. A quarter of limits.inFlight if absent.',
  ),
  'gateway.callers[].limits.requestsPerSecond': say(
    'Requests in a second; beyond it 429. No limit if absent.',
  ),
  'gateway.callers[].limits.burst': say('Requests at once after a quiet time; requestsPerSecond if absent.'),
  'gateway.callers[].limits.connections': say(
    "Connections; beyond it 429. If absent, a quarter of limits.connections, or of what the process's descriptors and memory allow.",
  ),
  'gateway.drainDelay': say(
    'For how long after SIGTERM it accepts connections, within shutdown.drainTimeout.',
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
    say('Where programs of the pod ask for tokens of credentials with output.endpoint.'),
  ),
  'tokenEndpoint.listen': say('Its address, of loopback.', '127.0.0.1:15082'),
  crossSiteRequests: seeing(
    'http.md#cross-site-requests',
    say("Whether to serve what another site's page makes a browser send.", 'allow'),
  ),
  accessLog: seeing('requests.md#access-log', say('Which requests are logged.', 'off')),
  accessLogSample: say('With accessLog: all, the share of requests without an error that are logged.', 1),
  limits: say('Bounds on requests and connections of the app.'),
  'limits.header': say("Bytes of a request's head; beyond it 431.", '64Ki'),
  'limits.headerCount': say('Header fields of a request; beyond it 431.', 200),
  'limits.target': say('Bytes of the target; beyond it 414.', '16Ki'),
  'limits.requestBody': say('Bytes of a body; beyond it 413. No limit if absent.'),
  'limits.replay': say('Bytes of a body that are kept to send it again; larger ones are sent once.', '64Ki'),
  'limits.inFlight': say('Requests at once; beyond it 503 overloaded.', 4096),
  'limits.connections': say(
    "Connections of the app; beyond it 503 overloaded. By default, and at most, half of the process's descriptors above 384.",
  ),
  'limits.headerTimeout': say(
    'Time for a head to arrive; else 400. Over HTTP/2, for each frame but DATA; else the connection takes no further requests.',
    '30s',
  ),
  'limits.keepAliveTimeout': say('When an idle connection of the app is closed.', '10m'),
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
    'The same for all bodies together; streams × streamWindow if absent. With less, uploads to a slow upstream hold up others.',
  ),
  shutdown: seeing('reloading.md#shutdown', say('How the sidecar shuts down.')),
  'shutdown.drainTimeout': say(
    "Longest time from SIGTERM to the end; keep it below the pod's grace period.",
    '25s',
  ),
};
