/** Used by the program, the reference page and the tests. */

export interface StepDescription {
  /** Follows the subject in the output: `credential shop: token`. */
  readonly title: string;
  readonly of: 'sidecar' | 'credential' | 'upstream' | 'interception' | 'running sidecar';
  readonly looks: string;
  /** Absent if the step only reports. */
  readonly warns?: string;
  readonly fails?: string;
  /** Also runs with `--offline`. */
  readonly offline?: true;
}

export const STEPS = {
  configuration: {
    title: 'configuration',
    of: 'sidecar',
    looks: 'Flags, environment and configuration file, with the certificates that they name',
    fails: 'Anything is wrong: no other step is taken',
    offline: true,
  },
  tracing: {
    title: 'traces',
    of: 'sidecar',
    looks: 'The `OTEL_…` variables, if they ask for spans',
    warns: 'A variable has an unknown value, and is ignored',
    offline: true,
  },
  listener: {
    title: 'listener',
    of: 'sidecar',
    looks: 'Each address that the sidecar listens on',
    fails: 'Another program has the address, and it is no sidecar',
  },
  callers: {
    title: 'callers',
    of: 'sidecar',
    looks: 'Who can reach the proxy',
    warns: 'It listens beyond loopback, so that whoever reaches it uses the token',
    offline: true,
  },
  credential_use: {
    title: 'use',
    of: 'credential',
    looks: 'Routes, destinations, captured hosts and outputs that want its token',
    warns: 'Nothing uses the credential',
    offline: true,
  },
  mounted_secret: {
    title: 'mounted Secret',
    of: 'credential',
    looks: 'The files of the credential',
    warns:
      'A file is mounted by `subPath`, so that rotation never reaches it; a value has white space around it or stands in quotes; others may write the file',
    fails: 'A file is missing, empty, too large, unreadable or malformed',
    offline: true,
  },
  token_file: {
    title: 'token file',
    of: 'credential',
    looks: 'The directory of `output.file`',
    fails: 'It is missing, or may not be written',
    offline: true,
  },
  certificate_files: {
    title: 'certificate files',
    of: 'credential',
    looks: 'Days left of `tls.caFile`, `tls.certFile`, `tls.crt`',
    warns: 'Less than 14 days, or a fifth of a shorter life',
    fails: 'A certificate has ended, or is not valid yet',
    offline: true,
  },
  provider_name: {
    title: 'provider name',
    of: 'credential',
    looks: "The addresses of the provider's host, by the resolver of the pod",
    fails: 'The name has no address, or the resolver does not answer',
  },
  provider_connection: {
    title: 'provider',
    of: 'credential',
    looks: 'A TCP connection to the provider, through its egress proxy',
    fails: 'It is refused, dropped or not made in time; or the port speaks TLS and the URL is http',
  },
  provider_tls: {
    title: 'provider TLS',
    of: 'credential',
    looks: 'A TLS handshake: version, name and chain of the certificate, days left, the trusted authority',
    warns: 'The certificate ends within 14 days, or a fifth of a shorter life',
    fails:
      'The certificate is not trusted, not for this name or not valid now; or the port does not speak TLS',
  },
  discovery: {
    title: 'issuer',
    of: 'credential',
    looks: "The issuer's metadata: where it was found, and which token endpoint it names",
    fails: 'There is none, or it is that of another issuer',
  },
  client_authentication: {
    title: 'client authentication',
    of: 'credential',
    looks: 'Whether the metadata offers the way in which the client proves itself',
    warns: 'It is not among those offered',
  },
  token_url: {
    title: 'token endpoint',
    of: 'credential',
    looks: 'The whole URL that is asked for a token',
    warns: 'A usual mistake: a realm or a token endpoint in the base URL, a metadata document, a login page',
    offline: true,
  },
  token: {
    title: 'token',
    of: 'credential',
    looks:
      'One token, asked for as the sidecar does; with a made-up token to exchange, if tokens of requests are exchanged',
    warns: 'The made-up token is exchanged, or the refusal does not say whether it means the client',
    fails: 'The provider rejects the client, answers something that is no token, or does not answer',
  },
  token_lifetime: {
    title: 'token lifetime',
    of: 'credential',
    looks:
      'How long the token lives, by the answer and by itself (or `renewal.defaultLifetime`), and when it is renewed',
    warns: 'Less than a minute, or answer and token disagree',
  },
  scope: {
    title: 'scope',
    of: 'credential',
    looks: 'The scopes that were asked for, and those that were granted',
    warns: 'A scope was asked for and not granted',
  },
  audience: {
    title: 'audience',
    of: 'credential',
    looks: 'The audience that was asked for, and that of the token, if it is a JWT',
    warns: 'The token is for others',
  },
  clock: {
    title: 'clock',
    of: 'credential',
    looks: "The difference between this machine's clock and the Date of the provider's answer",
    warns: 'More than five seconds',
  },
  destination: {
    title: 'destination',
    of: 'upstream',
    looks: 'Whether the upstream is a listener of the sidecar itself',
    fails: 'It is: each request would be answered 508',
    offline: true,
  },
  upstream_name: {
    title: 'upstream name',
    of: 'upstream',
    looks: "The addresses of the upstream's host, by the resolver of the pod",
    fails: 'The name has no address, or the resolver does not answer',
  },
  upstream_connection: {
    title: 'upstream',
    of: 'upstream',
    looks: 'A TCP connection to the upstream, through its egress proxy; without TLS a greeting of HTTP/2',
    warns: 'With `protocol: h2c`, it says nothing to that greeting, or hangs up',
    fails:
      'It is refused, dropped or not made in time; the port speaks TLS and the URL is http; `protocol: h2c` is not spoken, or HTTP/2 alone without it',
  },
  upstream_tls: {
    title: 'upstream TLS',
    of: 'upstream',
    looks: 'A TLS handshake, as with the provider, and the version of HTTP that the upstream chooses',
    warns:
      'The certificate ends soon, as above; with `protocol: auto`, connections of HTTP/1.1 are made and cut; the sidecar answers in its place, as connections of this process are redirected',
    fails:
      'The certificate is not trusted, not for this name or not valid now; the port does not speak TLS; the upstream refuses the version of `protocol`',
  },
  upstream_certificates: {
    title: 'certificate files',
    of: 'upstream',
    looks: 'Days left of `tls.caFile` and `tls.certFile` of the route',
    warns: 'Less than 14 days, or a fifth of a shorter life',
    fails: 'A certificate has ended, or is not valid yet',
    offline: true,
  },
  upstream_request: {
    title: 'upstream request',
    of: 'upstream',
    looks: 'With `--probe`: what the upstream answers to GET without a token, and then with one',
    warns:
      'It answers without a token as well; it forbids the path to this token; it answers an error of its own',
    fails: 'It refuses the token or its proof, or does not answer',
  },
  authority: {
    title: 'authority',
    of: 'interception',
    looks: 'The root that the sidecar has left in `interception.directory`',
    warns: 'There is none: no further step of interception is taken',
  },
  trust: {
    title: 'trust',
    of: 'interception',
    looks: 'Each variable of trust that is set here, such as `SSL_CERT_FILE`: whether its file has that root',
    warns: 'The file lacks it, has that of an earlier start, or cannot be read',
  },
  overriding: {
    title: 'overriding',
    of: 'interception',
    looks: 'Which variable overrides another one, and what the proxy variables lead to',
    warns:
      'One without the root overrides one with it; `HTTPS_PROXY` names another proxy, or `NO_PROXY` a host of the list',
  },
  capture: {
    title: 'capture',
    of: 'interception',
    looks: 'A connection to each listed host as an app makes it: whether it comes to the sidecar',
    warns: 'Somebody else shows a certificate there, or nobody answers',
  },
  captured_request: {
    title: 'captured request',
    of: 'interception',
    looks: 'With `--probe` of a path for all: what the host answers to a GET that goes this way',
    fails: 'The sidecar answers with an error of its own, or the host refuses the token',
  },
  running_sidecar: {
    title: 'sidecar',
    of: 'running sidecar',
    looks: 'Version, uptime, and what the sidecar says of itself',
    warns: 'It is of another version than this program, or it drains',
    fails: 'Nobody answers at the admin address, or it is no sidecar',
  },
  running_configuration: {
    title: 'configuration in use',
    of: 'running sidecar',
    looks: 'Whether the configuration file is in use',
    warns: 'The changed file was refused, or waits for tokens for more than 30 s',
  },
  running_credential: {
    title: 'state',
    of: 'running sidecar',
    looks: 'Of each credential: how long its token lives, or what is wrong',
    warns:
      'Renewals fail while a token is held; the newest secret was rejected; the mounted Secret cannot be used; an optional credential has no token; the first token is waited for',
    fails: 'A required credential has no token',
  },
  running_route: {
    title: 'traffic',
    of: 'running sidecar',
    looks: 'Of each route: requests and errors, or what is wrong with those of the last minute',
    warns: 'A tenth of them was answered by the upstream with 401, or with 500 or more',
    fails: 'A tenth of them failed',
  },
  time: {
    title: 'time',
    of: 'sidecar',
    looks: 'Whether all steps came to their end within `--check-timeout`',
    fails: 'They did not; what is done is reported',
  },
} as const satisfies Record<string, StepDescription>;

export type StepName = keyof typeof STEPS;
