/** What the errors mean with which the proxy answers, or ends connections; their titles are in src/platform/errors.ts. */

import type { CountedErrorCode } from '../../platform/errors.ts';
import type { Explanation } from './explanations.ts';

export const PROXY_ERRORS: Readonly<Record<CountedErrorCode, Omit<Explanation, 'title'>>> = {
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
