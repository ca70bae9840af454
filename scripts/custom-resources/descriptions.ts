/** What `kubectl explain` says of each field of a profile, by its path in `spec`; `status` of both kinds below. */

import { clientAuthenticationSettings } from '../../src/config/client-authentication.ts';

const METHODS = clientAuthenticationSettings.clientAuth.wrapped.options;

const TIMEOUTS = {
  '': 'How long an upstream may take.',
  '.connect': 'Name resolution, TCP and TLS together, such as 5s, which is the default.',
  '.response': "From the request's last byte to the answer's head; 60s by default.",
  '.idle': 'Without a byte in either direction while a body or a tunnel is open; 5m by default.',
};

const AUTHORITIES = {
  '': 'Where the PEM certificates are that are trusted in place of the public ones: in a ConfigMap or in a Secret, not in both.',
  '.configMap': "A ConfigMap of the pod's namespace.",
  '.configMap.name': 'Its name.',
  '.configMap.key': 'Its key; ca.crt by default.',
  '.secret': "A Secret of the pod's namespace. No other key of it is mounted.",
  '.secret.name': 'Its name.',
  '.secret.key': 'Its key; ca.crt by default.',
};

const UPSTREAM_TLS = {
  '': 'How TLS to the upstream is verified, and what the sidecar shows there.',
  '.serverName': "Name sent as SNI and checked in the certificate, in place of the URL's host.",
  ...under('.ca', AUTHORITIES),
  '.clientCertificate':
    "Name of a Secret of type kubernetes.io/tls in the pod's namespace: the certificate that the sidecar shows the upstream.",
};

const EGRESS_PROXY = {
  '': 'The HTTP proxy, of the network, that connections go out through (CONNECT). Nothing of the environment is heeded.',
  '.url': 'http://host:port',
  '.secret':
    "Name of a Secret in the pod's namespace with the keys username and password, which the proxy is shown.",
  '.noProxy':
    'Hosts that are reached without it: names, .suffix for all names below, addresses, or ranges such as 10.0.0.0/8.',
};

const OUTPUT = {
  '': 'Give the token out to what cannot be proxied: as a file, at an endpoint on loopback, or both.',
  '.file':
    "Name of a file in /var/run/token-sidecar/tokens, memory that the app's containers mount. It holds the token, whole, while there is one.",
  '.mode': 'Permission bits of the file in octal, such as "0640", which is the default.',
  '.group': "The number of its group, one of the pod's; that of the volume by default.",
  '.endpoint':
    'Give the token to callers of http://127.0.0.1:15082/token/NAME in the pod; false by default. NAME is what metrics call the credential.',
};

const FORWARDING = {
  '.credential': 'Name of the credential whose token is sent. A profile with one credential need not say it.',
  '.inject':
    'Where the token goes in a request, in one place or several; as Authorization: Bearer by default.',
  '.inject[].header': 'A header; Authorization by default.',
  '.inject[].scheme': 'What stands before the token there, such as Bearer; nothing where it is empty.',
  '.inject[].placeholder': 'Text that the app sends in the header, and that the token takes the place of.',
  '.inject[].query': 'A query parameter. URLs end up in logs of servers: only where nothing else is taken.',
  '.existingAuthorization':
    "What becomes of the app's own Authorization: replace it (default), keep it and add no token, or reject the request with 403.",
  '.whenTokenUnavailable':
    'Without a token a request fails with 503 (default), or is sent on as it is (passthrough).',
  '.retryOn401':
    'Renew the token and send the request once more when the upstream answers 401; true by default.',
  ...under('.timeouts', TIMEOUTS),
  '.protocol':
    'Which version of HTTP is spoken to the upstream: auto (default), http1, h2 (over TLS) or h2c (without TLS).',
  ...under('.tls', UPSTREAM_TLS),
  ...under('.egressProxy', EGRESS_PROXY),
};

const CREDENTIAL = {
  '': 'Credentials, each of which gets tokens of its own.',
  '.name':
    'Tells the credentials of a profile apart: needed where there are several. In metrics it is called PROFILE-NAME, and one without a name as the profile.',
  '.via':
    "Who asks the provider: the pod's sidecar (default), or the broker, in a ClusterTokenProfile alone. Its Secrets and ConfigMaps are then those of the broker's namespace, and nothing of them is in the pod.",
  '.secret':
    "The Secret, in the pod's namespace, that proves the client. Only the keys that are needed are mounted.",
  '.secret.name': 'Its name.',
  '.secret.keys':
    'Which key of the Secret holds each file that is called otherwise there, such as {client_id: username, client_secret: password}.',
  '.serviceAccountToken':
    "A token of the pod's service account, for the client authentication kubernetes_jwt and the grants that take a mounted token.",
  '.serviceAccountToken.audience':
    'The audience that the token is for: as a rule the issuer of the provider.',
  '.serviceAccountToken.expirationSeconds':
    'How long it lives; 3600 by default. The kubelet replaces it in time.',
  '.serviceAccountToken.file': 'The file that it takes the place of; token by default.',
  '.authUrl':
    'Base URL of a Keycloak: the token endpoint is {authUrl}/realms/{realm}/protocol/openid-connect/token.',
  '.realm': 'The realm, beside authUrl; dx by default.',
  '.tokenUrl': 'The whole URL of the token endpoint.',
  '.issuerUrl': 'The issuer, whose metadata (OpenID Connect Discovery, RFC 8414) names the token endpoint.',
  '.allowInsecureTokenUrl':
    'Allow http to the provider: the client secret then travels in clear. In a TokenProfile only where the operator allows it.',
  '.clientId': 'The client id, in place of the file client_id of the Secret.',
  '.clientAuth': `How the client proves itself: ${METHODS[0]} (default), ${METHODS.slice(1, -1).join(', ')} or ${METHODS.at(-1)}.`,
  '.basicEncoding':
    'With client_secret_basic: form (default) encodes both halves as RFC 6749 says, raw does not.',
  '.assertion': 'Settings of private_key_jwt and kubernetes_jwt.',
  '.assertion.keyFile': 'File of the private key, PEM or JWK; private_key by default.',
  '.assertion.certificateFile': 'File of a certificate whose thumbprint names the key, as Entra ID wants it.',
  '.assertion.keyId': "The key's id, in place of the JWK's own or the key's thumbprint.",
  '.assertion.algorithm': "Signature algorithm, in place of the JWK's own or the usual one of the key.",
  '.assertion.audience': "The assertion's aud; the token endpoint's URL by default.",
  '.assertion.tokenFile': 'With kubernetes_jwt: file of the service account token; token by default.',
  '.grant': 'By what tokens are granted: client_credentials (default), jwt_bearer, token_exchange or static.',
  '.jwtBearer': 'Settings of the grant jwt_bearer (RFC 7523).',
  '.jwtBearer.kind': 'rfc7523 (default), google_service_account or github_app.',
  '.jwtBearer.keyFile': 'File of the private key; private_key by default, and key.json for Google.',
  '.jwtBearer.certificateFile': 'File of a certificate whose thumbprint names the key.',
  '.jwtBearer.keyId': "The key's id.",
  '.jwtBearer.algorithm': 'Signature algorithm.',
  '.jwtBearer.issuer': "The assertion's iss; the client id by default.",
  '.jwtBearer.subject': 'In whose name the token is asked for.',
  '.jwtBearer.audience': "The assertion's aud; the token endpoint's URL by default.",
  '.jwtBearer.claims': 'Further claims of the assertion.',
  '.jwtBearer.repositories': 'With github_app: repositories that the token is limited to.',
  '.jwtBearer.permissions': 'With github_app: permissions that the token is limited to.',
  '.tokenExchange': 'Settings of the grant token_exchange (RFC 8693).',
  '.tokenExchange.subjectTokenFrom':
    'file, a mounted token, by default; request: the token of each request is exchanged.',
  '.tokenExchange.subjectTokenFile': 'File of the token that is exchanged; subject_token by default.',
  '.tokenExchange.subjectTokenType':
    'Its type, as a short name or a URI; jwt by default, access_token of requests.',
  '.tokenExchange.actorTokenFile': "File of the actor's token.",
  '.tokenExchange.actorTokenType': 'Its type; jwt by default.',
  '.tokenExchange.requestedTokenType': 'The type of token that is asked for.',
  '.static': 'Settings of the grant static: a token or API key that is mounted.',
  '.static.tokenFile': 'File of the token; token by default.',
  '.tokenType':
    'any takes tokens whose token_type is missing or a name of the provider of its own; bearer by default.',
  '.proofOfPossession': 'dpop binds tokens to a key of the sidecar; none by default.',
  '.dpop': 'Settings of proofOfPossession: dpop.',
  '.dpop.keyFile': "File of the key, PEM or JWK; a key of the sidecar's own by default.",
  '.dpop.allowBearer': 'Take a token that the provider has not bound; false by default.',
  '.required': 'The pod starts, and is ready, once every required credential has its token; true by default.',
  '.scope': 'Scopes asked for, by spaces.',
  '.audience': 'Audience asked for.',
  '.parameters': 'Further parameters of the grant, such as {resource: ["https://api.example.com"]}.',
  '.tls': 'How TLS to the provider is verified.',
  '.tls.serverName': "Name sent as SNI and checked in the certificate, in place of the URL's host.",
  ...under('.tls.ca', AUTHORITIES),
  ...under('.egressProxy', EGRESS_PROXY),
  ...under('.output', OUTPUT),
  '.timeouts': 'How long getting a token may take.',
  '.timeouts.request': 'One request to the provider, from connecting to the last byte; 10s by default.',
  '.timeouts.wait':
    'How long a request of the app waits for a token that is being asked for; 10s by default.',
  '.renewal': 'When tokens are renewed.',
  '.renewal.at': 'After this part of their life; 0.75 by default.',
  '.renewal.jitter': 'Earlier by up to this part of it, at random; 0.1 by default.',
  '.renewal.startupJitter': 'The first one is asked for after up to this, at random; 50ms by default.',
  '.renewal.minInterval': 'No sooner than this after the last one; 1s by default.',
  '.renewal.recovery':
    'While no token is held, the provider is asked at least this often; 30s by default. Large fleets raise it. It does not apply while the credentials are rejected, nor within Retry-After.',
  '.renewal.defaultLifetime': 'Life of a token that says nothing of it; 5m by default.',
  '.renewal.zeroLifetime': 'A life of 0 is refused by default, or counts as endless.',
};

const ROUTE = {
  '': "Where requests go that the app sends to the sidecar at http://127.0.0.1:15080. Of several profiles' routes the most specific one is taken.",
  '.name':
    'Tells the routes of a profile apart: needed where there are several. In metrics it is called PROFILE-NAME, and one without a name as the profile.',
  '.match': 'Which requests; all of them by default.',
  '.match.host': 'Host of the request, without port; any by default.',
  '.match.pathPrefix': 'Beginning of the path, by whole segments; / by default.',
  '.upstream': 'Where they go: an http or https URL with an optional base path.',
  '.stripPrefix': 'Take the matched prefix off the path; false by default.',
  ...FORWARDING,
};

const HOST = {
  '': 'Hosts that the app calls by their own names, and that get the token there. Their TLS ends in the sidecar, which the app is made to trust.',
  '.host': 'A name, or *.suffix for every name below it.',
  '.port': 'Only this port; 80 and 443 by default.',
  '.allowClearText': 'Let what is asked for as http leave in clear text, with the token; false by default.',
  ...FORWARDING,
};

const NAMESPACES = {
  '': 'Which namespaces may use the profile: those that are named, and those that the selector takes. None by default.',
  '.names': 'Their names.',
  '.selector': 'Labels of namespaces. An empty selector takes every namespace.',
  '.selector.matchLabels': 'Labels that a namespace has to have.',
  '.selector.matchExpressions': 'Conditions that its labels have to meet.',
  '.selector.matchExpressions[].key': "The label's key.",
  '.selector.matchExpressions[].operator': 'In, NotIn, Exists or DoesNotExist.',
  '.selector.matchExpressions[].values':
    'Values: with In and NotIn at least one, and none with Exists and DoesNotExist.',
};

const SERVICE_ACCOUNTS =
  'Which service accounts of these namespaces may have tokens by way of the broker, by their names. All of them by default.';

export const SPEC_DESCRIPTIONS: Readonly<Record<string, string>> = {
  '': 'What pods that name the profile get tokens by, and what for.',
  ...under('namespaces', NAMESPACES),
  serviceAccounts: SERVICE_ACCOUNTS,
  ...listed('credentials', CREDENTIAL),
  ...listed('routes', ROUTE),
  ...listed('hosts', HOST),
  mode: 'How the app reaches the sidecar: reverse, or forward, which hosts need. By default what routes and hosts need.',
  imagePullSecrets: "Names of Secrets, in the pod's namespace, that the sidecar's image is pulled with.",
};

/** The first text is that of the list; its items have none of their own. */
function listed(path: string, fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { '': ofList = '', ...others } = fields;
  return { [path]: ofList, ...under(`${path}[]`, others) };
}

function under(path: string, fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [`${path}${name}`, text]));
}
