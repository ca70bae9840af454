/** Every code and exit status that a user may meet. */

import { STEPS, type StepDescription } from '../../check/steps.ts';
import { type CountedErrorCode, ERRORS } from '../../platform/errors.ts';
import { EXIT_STATUSES } from '../../platform/exit-status.ts';
import { PROBLEM_CODES, type ProblemCode } from '../../platform/problems.ts';

interface Explanation {
  readonly title: string;
  /** Why it is an error and what usually causes it, in plain sentences. */
  readonly text: string;
  /** A typical mistake and its correction: lines of a file or shell. */
  readonly wrong?: string;
  readonly right?: string;
  /** One sentence. */
  readonly remedy?: string;
}

interface Chapter {
  readonly title: string;
  /** By code, or exit status. */
  readonly explanations: Readonly<Record<string, Explanation>>;
}

/** Titles and remedies are defined with the codes. */
const CONFIGURATION: Readonly<Record<ProblemCode, Omit<Explanation, 'title' | 'remedy'>>> = {
  file_unreadable: {
    text: 'The reason is in the message. ENOENT: there is no such file. EACCES: the user of the container (65532 in the image) may not read it; mount with defaultMode 0440 and fsGroup 65532.',
  },
  file_not_text: {
    text: 'It holds a control character, or bytes that are not UTF-8: UTF-16, a truncated download, a binary file.',
    right: 'iconv -f utf-16 -t utf-8 old.yaml > token-sidecar.yaml',
  },
  file_not_a_mapping: {
    text: 'It is a list or a single value, often another file: a Secret, a list of variables, a part of a manifest. Its content may be secret and is not shown.',
    right: 'routes:\n  - name: api\n    upstream: https://api.example.com',
  },
  invalid_yaml: {
    text: "The parser stopped here. The mistake is often on the line before: an open quote or bracket, or other indentation. The code in parentheses is the parser's own.",
    wrong: 'routes: [\n  { name: api }',
    right: 'routes: [\n  { name: api }\n]',
  },
  duplicate_key: {
    text: 'YAML has each key of a mapping once, so neither value is taken.',
    wrong: 'listen: 127.0.0.1:15080\nlisten: 127.0.0.1:15090',
    right: 'listen: 127.0.0.1:15090',
  },
  tab_indentation: {
    text: 'YAML is indented by spaces alone.',
    right: 'admin:\n  listen: 0.0.0.0:15081',
  },
  unknown_alias: {
    text: 'A value that begins with * is an alias in YAML. So wildcard hosts need quotes.',
    wrong: '- host: *.example.com',
    right: '- host: "*.example.com"',
  },
  too_many_aliases: {
    text: 'At most 100 are resolved, because aliases of aliases grow without bound.',
  },
  too_deep: {
    text: 'At most 200 levels are read.',
  },
  unknown_key: {
    text: 'Keys are case-sensitive. The message has the right name if one is close, or the right place if the key belongs elsewhere in the file.',
    wrong: 'routes:\n  - name: api\n    pathPrefix: /api/',
    right: 'routes:\n  - name: api\n    match: { pathPrefix: /api/ }',
  },
  missing_value: {
    text: 'It has no default. A variable stands for its flag: TOKEN_SIDECAR_UPSTREAM is --upstream.',
    right: 'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com\nTOKEN_SIDECAR_UPSTREAM=https://api.example.com',
  },
  wrong_type: {
    text: 'A number where text is expected, a mapping where a list is, and so on. In YAML 1.2 a bare 1 is a number, and yes is text.',
    wrong: 'retryOn401: yes',
    right: 'retryOn401: true',
  },
  invalid_value: {
    text: 'It is out of range, or has another form. The message says what is expected.',
  },
  unknown_word: {
    text: 'The setting takes one of a few words, as a rule in lower case.',
    wrong: 'protocol: http2',
    right: 'protocol: h2',
  },
  invalid_url: {
    text: 'A URL here has a scheme, a host, and perhaps a port and a path. User, password, query and fragment are refused, and not shown in messages.',
    wrong: 'upstream: api.example.com',
    right: 'upstream: https://api.example.com',
  },
  invalid_duration: {
    text: 'A duration is a number and its unit: ms, s, m, h or d.',
    wrong: 'timeouts: { connect: 5 }',
    right: 'timeouts: { connect: 5s }',
  },
  invalid_size: {
    text: 'A size is a number of bytes, or one with Ki, Mi or Gi (powers of 1024).',
    wrong: 'limits: { header: 64KB }',
    right: 'limits: { header: 64Ki }',
  },
  invalid_address: {
    text: 'A listener has a host and a port. IPv6 addresses stand in brackets; port 0 picks a free one; [::] stands for every address.',
    wrong: 'listen: 15080',
    right: 'listen: 127.0.0.1:15080',
  },
  conflicting_settings: {
    text: 'Both say the same thing in two ways, and may disagree.',
    wrong: 'authUrl: https://sso.example.com\ntokenUrl: https://sso.example.com/token',
    right: 'tokenUrl: https://sso.example.com/token',
  },
  setting_without_use: {
    text: 'It belongs to another choice than the one that is made: a key file without private_key_jwt, a trust directory without interception.',
  },
  ignored_setting: {
    text: 'Flags and variables describe the credential and the route named "default". The file has other names, and nothing uses "default".',
    wrong: 'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com, and a file with credentials: [{ name: crm, … }]',
    right: 'credentials:\n  - name: default\n    realm: dx',
  },
  unknown_variable: {
    text: 'It begins with TOKEN_SIDECAR_, and no setting of this command reads it. Variables that Kubernetes makes for a Service (…_SERVICE_HOST, …_PORT_443_TCP) are left alone.',
    wrong: 'TOKEN_SIDECAR_AUTH_ULR=https://sso.example.com',
    right: 'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com',
  },
  duplicate_name: {
    text: 'Names are labels of metrics, and routes name credentials by them.',
  },
  unknown_credential: {
    text: 'A route, or a listed host, gets the token of the credential that it names, or of the one called "default".',
    wrong: 'credentials:\n  - name: crm\n    …\nroutes:\n  - name: api\n    credential: cmr',
    right: 'credential: crm',
  },
  unreachable_route: {
    text: 'The first route that matches takes the request, and an earlier one matches all that this one does.',
    wrong:
      'routes:\n  - { name: all, upstream: https://a.example.com }\n  - { name: api, match: { pathPrefix: /api/ }, upstream: https://b.example.com }',
    right:
      'routes:\n  - { name: api, match: { pathPrefix: /api/ }, upstream: https://b.example.com }\n  - { name: all, upstream: https://a.example.com }',
  },
  insecure_token_url: {
    text: 'Over http everybody on the way can read the client secret and the token. Loopback is allowed. For tests, allowInsecureTokenUrl: true or --allow-insecure-token-url permits it.',
    wrong: 'authUrl: http://sso.example.com',
    right: 'authUrl: https://sso.example.com',
  },
  protocol_mismatch: {
    text: 'HTTP/2 over TLS is called h2, and without TLS h2c. The URL decides which it can be.',
    wrong: 'upstream: https://api.example.com\nprotocol: h2c',
    right: 'upstream: https://api.example.com\nprotocol: h2',
  },
  reserved_parameter: {
    text: 'The sidecar sets this parameter of the grant, or claim of the assertion, itself.',
    wrong: 'parameters: { scope: read }',
    right: 'scope: read',
  },
  invalid_pem: {
    text: 'It may be a key in place of a certificate, DER in place of PEM, an encrypted key, or an empty file.',
    right: 'openssl x509 -inform der -in ca.der -out ca.crt',
  },
  incomplete_tls: {
    text: 'One without the other is of no use.',
    right: 'tls: { certFile: /etc/tls/tls.crt, keyFile: /etc/tls/tls.key }',
  },
  address_in_use: {
    text: 'The system refused to listen (EADDRINUSE), often because of a second sidecar or a demo. The message names the program if it can. In a pod all containers share their ports.',
    right: 'TOKEN_SIDECAR_LISTEN=127.0.0.1:15180',
  },
  address_unavailable: {
    text: 'It is no address of this machine (EADDRNOTAVAIL), or the user may not listen on so low a port (EACCES).',
    right: 'TOKEN_SIDECAR_LISTEN=127.0.0.1:15080',
  },
};

/** Titles are in src/platform/errors.ts. */
const PROXY_ERRORS: Readonly<Record<CountedErrorCode, Omit<Explanation, 'title'>>> = {
  bad_request: {
    text: 'It may be two lengths, a bare line feed or a path that climbs. The detail says which.',
    remedy: 'Look at how the app or its library makes the request.',
  },
  destination_not_allowed: {
    text: 'The host is not in forwardProxy.allow, or the request is a CONNECT and connect is deny.',
    remedy: "Add the host to forwardProxy.allow if the app may go there, or to the app's NO_PROXY.",
  },
  authorization_not_allowed: {
    text: 'It has existingAuthorization: reject.',
    remedy: 'Leave Authorization out, or set existingAuthorization: replace.',
  },
  authorization_needs_http1: {
    text: 'The app sent such an Authorization, and its request came, or would leave, by HTTP/2.',
    remedy: 'Have the app speak HTTP/1.1, and set protocol: http1 for the route.',
  },
  placeholder_not_allowed: {
    text: 'The detail says in which header.',
    remedy: 'Send the placeholder once, in the header that the route names.',
  },
  cross_site_request: {
    text: 'A browser sent it, and crossSiteRequests is refuse.',
    remedy: 'Nothing, if you do not know the page.',
  },
  caller_unknown: {
    text: 'It shows no certificate or service account token, or one that has expired, is of another authority, audience or cluster, or of a pod that is gone. The detail says which.',
    remedy:
      "Show a client certificate of the gateway's authority, or a projected token of its audience, and renew it in time.",
  },
  caller_unverified: {
    text: 'The cluster does not answer whether its token is good, or too many tokens wait for that.',
    remedy:
      'Repeat after Retry-After; if it lasts, look at token_sidecar_caller_token_reviews_total and the API server.',
  },
  caller_ambiguous: {
    text: 'It proves two, or one in a form that can be read in two ways.',
    remedy: 'Show one proof, once.',
  },
  caller_not_allowed: {
    text: 'No entry of gateway.callers matches, or the first that does lists neither the route nor its credential.',
    remedy: 'Add the route to the entry if the caller may go there.',
  },
  too_many_requests: {
    text: 'The bounds are the limits of its entry in gateway.callers: inFlight, connections, requestsPerSecond.',
    remedy: 'Repeat after Retry-After; raise the limits if the caller is meant to ask so much.',
  },
  route_not_found: {
    text: 'Prefixes match whole segments: /api matches /api/x, not /apis.',
    remedy: 'Compare path and Host with match.pathPrefix and match.host of each route.',
  },
  request_timeout: {
    text: "Nothing moved for the route's timeouts.idle.",
    remedy: 'Look for an app that writes or reads slowly or not at all.',
  },
  request_too_large: {
    text: 'The limit is limits.requestBody.',
    remedy: 'Raise it, or send less at once.',
  },
  uri_too_long: {
    text: 'The limit is limits.target.',
    remedy: 'Move parameters into the body, or raise it.',
  },
  misdirected_request: {
    text: 'On an intercepted connection its host alone gets the token.',
    remedy: 'Open a connection for each host; HTTP/2 clients do so after this answer.',
  },
  headers_too_large: {
    text: 'The limits are limits.header and limits.headerCount. Cookies are often why.',
    remedy: 'Send fewer or shorter fields, or raise the limit.',
  },
  upstream_unreachable: {
    text: "The name is unknown, nothing listens, or a NetworkPolicy is in the way. The detail has the system's code, the bound is timeouts.connect.",
    remedy: 'Run token-sidecar check in the pod: it tries name, TCP and TLS.',
  },
  upstream_protocol_error: {
    text: 'So ends plain HTTP to a TLS port, or gRPC by a route that speaks HTTP/1.1. The detail says which.',
    remedy:
      "Compare the upstream's URL (http or https) and the route's protocol with what the port speaks; look at the upstream's log.",
  },
  upstream_tls_error: {
    text: 'The certificate is of an untrusted authority or another name or has expired, or the port does not speak TLS.',
    remedy:
      'Run token-sidecar check in the pod; set tls.caFile for a private authority, tls.serverName for another name.',
  },
  token_unavailable: {
    text: 'None came within timeouts.wait, so the request was not sent.',
    remedy: 'Look at the status page or the log, or run token-sidecar check; repeat after Retry-After.',
  },
  draining: {
    text: 'It takes no new requests on open connections.',
    remedy: 'Repeat the request; if the app still runs then, make the sidecar a native one.',
  },
  overloaded: {
    text: "The bounds are limits.inFlight, limits.connections, and the process's descriptors and memory.",
    remedy: 'Find out whether the upstream is slow; raise the limit if it may carry so many.',
  },
  upstream_timeout: {
    text: 'The head of the answer did not come within timeouts.response, or no byte passed for timeouts.idle.',
    remedy: "Look at the upstream, or raise the route's timeouts for slow calls.",
  },
  loop_detected: {
    text: 'The request has passed this sidecar before.',
    remedy: "Set the upstream to the API, not to the sidecar's address.",
  },
  internal: {
    text: 'The log has it, with a stack.',
    remedy: 'Report it with the log line; it holds no secret.',
  },
  subject_token_missing: {
    text: 'The credential exchanges the token of each request.',
    remedy: "Have the app pass on its caller's token, in the header that the credential reads.",
  },
  subject_token_refused: {
    text: 'It has expired, is of another issuer, or may not be exchanged for this audience.',
    remedy: 'Look at the detail, and at what the provider lets this client exchange.',
  },
  client_rejected_certificate: {
    text: 'It does not trust the authority of the sidecar.',
    remedy:
      "Let the app trust ca.crt in the trust directory; the page on interception has each language's variable.",
  },
  server_name_mismatch: {
    text: 'The token belongs to the host of the CONNECT alone.',
    remedy: 'Look at how the app sets its proxy: both names must be the same.',
  },
  client_tls_error: {
    text: 'The app broke it off, or offered nothing that the sidecar takes (TLS 1.2 at least).',
    remedy: "Look at the app's log.",
  },
};

export const CHAPTERS: readonly Chapter[] = [
  {
    title: 'Mistakes in the configuration',
    explanations: Object.fromEntries(
      Object.entries(CONFIGURATION).map(([code, explanation]) => [
        code,
        { ...PROBLEM_CODES[code as keyof typeof PROBLEM_CODES], ...explanation },
      ]),
    ),
  },
  {
    title: 'Errors of the proxy',
    explanations: Object.fromEntries(
      Object.entries(PROXY_ERRORS).map(([code, explanation]) => [
        code,
        { title: ERRORS[code as CountedErrorCode].title, ...explanation },
      ]),
    ),
  },
  { title: 'Exit statuses', explanations: EXIT_STATUSES },
  { title: 'Steps of check', explanations: stepsOfCheck() },
];

function stepsOfCheck(): Chapter['explanations'] {
  const steps: readonly (readonly [string, StepDescription])[] = Object.entries(STEPS);
  return Object.fromEntries(
    steps.map(([step, { title, looks, warns, fails }]) => {
      const text = [
        `${looks}.`,
        ...(warns === undefined ? [] : [`Warning: ${warns}.`]),
        ...(fails === undefined ? [] : [`Failure: ${fails}.`]),
      ].join(' ');
      const remedy = 'The finding says it. Then run token-sidecar check again.';
      return [step, { title: `Step of check: ${title}`, text, remedy }];
    }),
  );
}

export function explanationOf(code: string): Explanation | undefined {
  for (const { explanations } of CHAPTERS) {
    if (Object.hasOwn(explanations, code)) return explanations[code];
  }
  return undefined;
}

export const CODES: readonly string[] = CHAPTERS.flatMap(({ explanations }) => Object.keys(explanations));
