/** Every code and exit status that a user may meet. */

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
    text: 'The message holds the reason: ENOENT, there is no such file; EACCES, the user of the container may not read it; "no regular file", it is a directory, a pipe or a device. The image runs as user 65532, so files have to be readable for that user or its group (defaultMode 0440 with fsGroup 65532).',
  },
  file_not_text: {
    text: 'The file holds a control character, or octets that are not UTF-8. An editor that saves UTF-16, a truncated download and a binary file in the wrong place look like this.',
    right: 'iconv -f utf-16 -t utf-8 old.yaml > token-sidecar.yaml',
  },
  file_not_a_mapping: {
    text: 'The file is a list or a single value. Often it is another file: a Secret, a list of environment variables, a manifest cut out at the wrong place. Its content is not shown, as it may be secret.',
    right: 'routes:\n  - name: api\n    upstream: https://api.example.com',
  },
  invalid_yaml: {
    text: "The parser stopped here. The mistake is often on the line before: a quote or bracket that is not closed, or indentation that differs from its neighbours. The code in parentheses is the parser's own.",
    wrong: 'routes: [\n  { name: api }',
    right: 'routes: [\n  { name: api }\n]',
  },
  duplicate_key: {
    text: 'YAML has each key of a mapping once. Which of two values is meant would be a guess, so neither is taken.',
    wrong: 'listen: 127.0.0.1:15080\nlisten: 127.0.0.1:15090',
    right: 'listen: 127.0.0.1:15090',
  },
  tab_indentation: {
    text: 'YAML is indented by spaces alone: how wide a tab is depends on who looks.',
    right: 'admin:\n  listen: 0.0.0.0:15081',
  },
  unknown_alias: {
    text: 'A value that begins with * is an alias in YAML: it repeats what was marked by & before. Wildcard hosts need quotes for this reason.',
    wrong: '- host: *.example.com',
    right: '- host: "*.example.com"',
  },
  too_many_aliases: {
    text: 'Aliases of aliases grow without bound: ten lines can stand for gigabytes. At most 100 are resolved.',
  },
  too_deep: {
    text: 'Brackets are open more than 200 deep, or lists are nested beyond what the parser takes. No configuration is like that.',
  },
  unknown_key: {
    text: 'Keys are case-sensitive and written as in the reference. A key that nobody reads would be a setting that silently does not apply, so it is an error. If the right name is close, the message has it; if the key belongs elsewhere in the file, the message says where.',
    wrong: 'routes:\n  - name: api\n    pathPrefix: /api/',
    right: 'routes:\n  - name: api\n    match: { pathPrefix: /api/ }',
  },
  missing_value: {
    text: 'The setting has no default and is not there. Names of variables stand for their flags, too: TOKEN_SIDECAR_UPSTREAM is --upstream.',
    right: 'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com\nTOKEN_SIDECAR_UPSTREAM=https://api.example.com',
  },
  wrong_type: {
    text: 'The value is a number where text is expected, a mapping where a list is, and so on. In YAML 1.2 a bare 1 is a number, true and false are the only truth values, and yes is text.',
    wrong: 'retryOn401: yes',
    right: 'retryOn401: true',
  },
  invalid_value: {
    text: 'The value is of the right kind and still not one that can be used: out of its range, or not of its form. The message says what is expected.',
  },
  unknown_word: {
    text: 'The setting takes one of a few words, all in lower case as a rule.',
    wrong: 'protocol: http2',
    right: 'protocol: h2',
  },
  invalid_url: {
    text: 'A URL here names a server: scheme, host, optional port and path. A user and password in it would end up in logs of proxies, and a query or fragment would be lost, so none is taken. Such parts are not shown in messages.',
    wrong: 'upstream: api.example.com',
    right: 'upstream: https://api.example.com',
  },
  invalid_duration: {
    text: 'A duration is a number and its unit: ms, s, m, h or d. A bare number is refused, because its unit would be a guess.',
    wrong: 'timeouts: { connect: 5 }',
    right: 'timeouts: { connect: 5s }',
  },
  invalid_size: {
    text: 'A size is a number of bytes, with Ki, Mi or Gi for powers of 1024, as Kubernetes writes them.',
    wrong: 'limits: { header: 64KB }',
    right: 'limits: { header: 64Ki }',
  },
  invalid_address: {
    text: 'A listener has a host and a port. IPv6 addresses stand in brackets; port 0 lets the system pick one; [::] stands for every address of the machine.',
    wrong: 'listen: 15080',
    right: 'listen: 127.0.0.1:15080',
  },
  conflicting_settings: {
    text: 'Both settings say the same thing in two ways, and they may say two things. Which one is meant would be a guess.',
    wrong: 'authUrl: https://sso.example.com\ntokenUrl: https://sso.example.com/token',
    right: 'tokenUrl: https://sso.example.com/token',
  },
  setting_without_use: {
    text: 'The setting belongs to another choice than the one that is made: a key file without private_key_jwt, a trust directory without interception. It would have no effect, which nobody sees until it matters.',
  },
  ignored_setting: {
    text: 'Flags and variables describe one credential and one route, both named "default". Beside a file whose entries have other names, and where none of them uses "default", they would have no effect.',
    wrong: 'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com, and a file with credentials: [{ name: crm, … }]',
    right: 'credentials:\n  - name: default\n    realm: dx',
  },
  unknown_variable: {
    text: 'Variables that begin with TOKEN_SIDECAR_ are settings of the program. One that no setting reads is misspelt, or meant for another command: it would silently not apply. Those that Kubernetes makes for a Service of this name (…_SERVICE_HOST, …_PORT_443_TCP) are left alone.',
    wrong: 'TOKEN_SIDECAR_AUTH_ULR=https://sso.example.com',
    right: 'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com',
  },
  duplicate_name: {
    text: 'Names are labels of metrics and fields of log lines, and routes name credentials by them. Two entries of one name could not be told apart.',
  },
  unknown_credential: {
    text: 'A route, or a host of the forward proxy, names the credential whose token it gets; without a name it is the one called "default".',
    wrong: 'credentials:\n  - name: crm\n    …\nroutes:\n  - name: api\n    credential: cmr',
    right: 'credential: crm',
  },
  unreachable_route: {
    text: 'The first route that matches takes the request. One behind it that matches nothing more would never be used.',
    wrong:
      'routes:\n  - { name: all, upstream: https://a.example.com }\n  - { name: api, match: { pathPrefix: /api/ }, upstream: https://b.example.com }',
    right:
      'routes:\n  - { name: api, match: { pathPrefix: /api/ }, upstream: https://b.example.com }\n  - { name: all, upstream: https://a.example.com }',
  },
  insecure_token_url: {
    text: 'Over http everybody on the way can read the client secret and the token. Loopback is free of this, as the traffic stays on the machine. In a test environment allowInsecureTokenUrl: true, or --allow-insecure-token-url, permits it.',
    wrong: 'authUrl: http://sso.example.com',
    right: 'authUrl: https://sso.example.com',
  },
  protocol_mismatch: {
    text: 'HTTP/2 over TLS is called h2, and without it h2c. The URL decides which of the two there can be.',
    wrong: 'upstream: https://api.example.com\nprotocol: h2c',
    right: 'upstream: https://api.example.com\nprotocol: h2',
  },
  reserved_parameter: {
    text: "The sidecar sets this parameter of the grant, or claim of the assertion, itself. Twice in one request its meaning would be the provider's guess.",
    wrong: 'parameters: { scope: read }',
    right: 'scope: read',
  },
  invalid_pem: {
    text: 'Certificates and keys are read when the program starts, so that a wrong file is found then and not at the first request. A key in place of a certificate, DER in place of PEM, an encrypted key and an empty file look like this.',
    right: 'openssl x509 -inform der -in ca.der -out ca.crt',
  },
  incomplete_tls: {
    text: 'Who shows a certificate has to prove that its key is theirs: one without the other is of no use.',
    right: 'tls: { certFile: /etc/tls/tls.crt, keyFile: /etc/tls/tls.key }',
  },
  address_in_use: {
    text: 'The system refused to listen (EADDRINUSE): another program does so already, often a second sidecar or a demo on the same machine. Where the program may look, the message names it. In a pod all containers share their ports.',
    right: 'TOKEN_SIDECAR_LISTEN=127.0.0.1:15180',
  },
  address_unavailable: {
    text: 'The address is not one of this machine (EADDRNOTAVAIL), or the user may not listen on so low a port (EACCES).',
    right: 'TOKEN_SIDECAR_LISTEN=127.0.0.1:15080',
  },
};

/** Titles are in src/platform/errors.ts. */
const PROXY_ERRORS: Readonly<Record<CountedErrorCode, Omit<Explanation, 'title'>>> = {
  bad_request: {
    text: 'The app sent something that is not valid HTTP, or that two programs could read in two ways: two lengths, a bare line feed, a path that climbs. Such a request is not forwarded, because the upstream might read it differently. The detail of the answer says what it is.',
    remedy: 'Look at the detail, and at how the app or its library makes the request.',
  },
  destination_not_allowed: {
    text: 'The request went through the forward proxy to a host that is not in forwardProxy.allow, or with CONNECT where connect is deny.',
    remedy:
      "Add the host to forwardProxy.allow if the app may go there, or take it out of the app's proxy settings by NO_PROXY.",
  },
  authorization_not_allowed: {
    text: 'The route has existingAuthorization: reject, and the request already carries an Authorization field.',
    remedy: 'Have the app leave Authorization out, or set existingAuthorization to replace.',
  },
  authorization_needs_http1: {
    text: 'The request brings its own Authorization with NTLM or Negotiate, which an upstream takes for the whole connection, and it came, or would leave, by HTTP/2, where requests of others share the connection.',
    remedy:
      'Have the app speak HTTP/1.1, and set protocol: http1 for the route if its upstream is spoken to by HTTP/2.',
  },
  placeholder_not_allowed: {
    text: 'The route puts the token in the place of a placeholder, and a header of the request holds the placeholder where no token is to go. The detail of the answer says where.',
    remedy: 'Send the placeholder once, in the header that the route names.',
  },
  cross_site_request: {
    text: 'A browser on this machine sent the request for a page of another site, and crossSiteRequests is refuse.',
    remedy: 'Nothing, if you do not know the page: it was kept from using your token.',
  },
  caller_unknown: {
    text: 'The gateway does not know who sent the request: it shows neither a client certificate nor a service account token; or a certificate that has ended, that no authority of gateway.clientCaFile signed, or that names nobody; or a token of another audience, issuer or cluster, that has expired, or whose pod is gone. The detail of the answer says which.',
    remedy:
      'Have the caller show a client certificate of the authority that the gateway trusts, or a projected token of its audience, and renew it in time.',
  },
  caller_unverified: {
    text: 'The caller shows a service account token, and the cluster that could tell whether it is good does not answer, or too many tokens wait for its word.',
    remedy:
      'Repeat the request after Retry-After; look at token_sidecar_caller_token_reviews_total and at the API server if it lasts.',
  },
  caller_ambiguous: {
    text: 'The request proves two callers at once, or one in a form that two programs could read in two ways, so that none is believed.',
    remedy: 'Have the caller show one proof of who it is, once.',
  },
  caller_not_allowed: {
    text: 'The gateway knows the caller, and no entry of gateway.callers matches it, or the one that does lists neither the route nor its credential.',
    remedy:
      'Add the route to the entry of the caller if it may go there. The first entry that matches decides.',
  },
  too_many_requests: {
    text: 'The caller has more requests in flight, more connections open or asks more often than the limits of its entry in gateway.callers allow.',
    remedy:
      'Repeat the request after Retry-After; raise the limits of the entry if the caller is meant to ask so much.',
  },
  route_not_found: {
    text: 'No route has this host and path. Prefixes match whole segments: /api matches /api and /api/x, and not /apis.',
    remedy: 'Compare the path with match.pathPrefix and the Host field with match.host of each route.',
  },
  request_timeout: {
    text: 'The app stopped in the middle of an upload, or of reading an answer, for longer than timeouts.idle of the route.',
    remedy: 'Look for an app that opens a connection and writes or reads slowly or not at all.',
  },
  request_too_large: {
    text: 'The body is larger than limits.requestBody.',
    remedy: 'Raise limits.requestBody, or send less at once.',
  },
  uri_too_long: {
    text: 'The target of the request is longer than limits.target.',
    remedy: 'Move parameters into the body, or raise limits.target.',
  },
  misdirected_request: {
    text: 'Inside of an intercepted connection the request names another host than the one that the connection was opened to. The token belongs to that one alone.',
    remedy: 'Have the app open a connection for each host; HTTP/2 clients do so after this answer.',
  },
  headers_too_large: {
    text: 'The head of the request has more bytes than limits.header, or more fields than limits.headerCount. Cookies are the usual reason.',
    remedy: 'Send fewer or shorter fields, or raise the limit.',
  },
  upstream_unreachable: {
    text: "No connection to the upstream could be made within timeouts.connect: the name is unknown, nothing listens there, or a NetworkPolicy is in the way. The detail has the system's code.",
    remedy: 'Run token-sidecar check in the pod: it tries name, TCP and TLS one after the other.',
  },
  upstream_protocol_error: {
    text: 'The upstream closed the connection in the middle of an answer, or sent something that is not HTTP. Plain HTTP sent to a TLS port ends like this, and so does a gRPC call whose route speaks HTTP/1.1 to the upstream. The detail says which.',
    remedy:
      "Compare http and https in the upstream's URL, and the route's protocol, with what the port speaks, and look at the upstream's log.",
  },
  upstream_tls_error: {
    text: 'The TLS handshake failed: an authority that is not trusted, a certificate of another name, one that has expired, or a port without TLS.',
    remedy:
      'Run token-sidecar check in the pod; set tls.caFile for a private authority, tls.serverName for another name.',
  },
  token_unavailable: {
    text: 'No valid token is held, and none came within timeouts.wait. The request was not sent: without its token it would be refused, or worse, accepted. The log and the status page say why the provider gave none.',
    remedy: 'Look at the status page or run token-sidecar check; repeat the request after Retry-After.',
  },
  draining: {
    text: 'The sidecar is ending and takes no new requests on open connections.',
    remedy:
      'Repeat the request; if it happens while the app still runs, start the sidecar as a native sidecar container.',
  },
  overloaded: {
    text: "More requests are in flight than limits.inFlight, or more connections open than limits.connections or the process's descriptors and memory allow.",
    remedy: 'Find out whether the upstream is slow; raise the limit if it is meant to carry so many.',
  },
  upstream_timeout: {
    text: 'The head of the answer did not come within timeouts.response, or no byte passed for timeouts.idle.',
    remedy: "Look at the upstream, or raise the route's timeouts for calls that take their time.",
  },
  loop_detected: {
    text: 'The request has passed this sidecar before: its upstream leads back to it.',
    remedy: 'Set the upstream to the API itself, and not to the address of the sidecar.',
  },
  internal: {
    text: 'Something happened that was not foreseen. The log has it, with a stack.',
    remedy: 'Report it with the log line, which holds no secret.',
  },
  subject_token_missing: {
    text: 'The token of the request is to be exchanged for one for the upstream, and the request carries none.',
    remedy: 'Have the app pass on the token of its own caller, in the header that the credential reads.',
  },
  subject_token_refused: {
    text: 'The provider refused to exchange the token of the request: it has expired, is of another issuer, or may not be exchanged for this audience.',
    remedy: 'Look at the detail of the answer, and at what the provider allows this client to exchange.',
  },
  client_rejected_certificate: {
    text: 'TLS is intercepted for this host, and the app does not trust the authority of the sidecar.',
    remedy:
      'Let the app trust ca.crt in the trust directory; the reference of interception has the variable for each language.',
  },
  server_name_mismatch: {
    text: 'The app asked for one host by CONNECT and for another by TLS. The token belongs to the first alone.',
    remedy: 'Look at how the app sets its proxy: both names have to be the same.',
  },
  client_tls_error: {
    text: 'The app broke off the handshake, or offered nothing that the sidecar takes (TLS 1.2 at least).',
    remedy: 'Look at the log of the app for its side of the story.',
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
];

export function explanationOf(code: string): Explanation | undefined {
  for (const { explanations } of CHAPTERS) {
    if (Object.hasOwn(explanations, code)) return explanations[code];
  }
  return undefined;
}

export const CODES: readonly string[] = CHAPTERS.flatMap(({ explanations }) => Object.keys(explanations));
