/** What each kind of configuration mistake means; titles and remedies are defined with the codes. */

import type { ProblemCode } from '../../platform/problems.ts';
import type { Explanation } from './explanations.ts';

export const CONFIGURATION: Readonly<Record<ProblemCode, Omit<Explanation, 'title' | 'remedy'>>> = {
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
