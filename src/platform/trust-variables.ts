/** Variables by which runtimes trust the interception authority. */

type TrustEffect =
  /** Beside the default ones: the sidecar's root is enough. */
  | 'adds'
  /** No others are trusted: the file has to hold the public ones too. */
  | 'replaces';

interface TrustVariable {
  readonly name: string;
  readonly effect: TrustEffect;
  readonly servedBy: string;
}

/** docs/reference/interception.md has the same rows. */
export const TRUST_VARIABLES: readonly TrustVariable[] = [
  { name: 'NODE_EXTRA_CA_CERTS', effect: 'adds', servedBy: 'Node' },
  { name: 'DENO_CERT', effect: 'adds', servedBy: 'Deno' },
  {
    name: 'SSL_CERT_FILE',
    effect: 'replaces',
    servedBy: 'OpenSSL, Python ssl and httpx, Go, Ruby, .NET, rustls-native-certs',
  },
  { name: 'REQUESTS_CA_BUNDLE', effect: 'replaces', servedBy: 'Python requests' },
  { name: 'CURL_CA_BUNDLE', effect: 'replaces', servedBy: 'curl' },
  { name: 'PIP_CERT', effect: 'replaces', servedBy: 'pip' },
  { name: 'AWS_CA_BUNDLE', effect: 'replaces', servedBy: 'AWS CLI and SDKs' },
  { name: 'GIT_SSL_CAINFO', effect: 'replaces', servedBy: 'git' },
  { name: 'CARGO_HTTP_CAINFO', effect: 'replaces', servedBy: 'cargo' },
  {
    name: 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
    effect: 'replaces',
    servedBy: 'gRPC in C++, Python, Ruby, PHP and Node',
  },
  { name: 'npm_config_cafile', effect: 'replaces', servedBy: 'npm' },
  { name: 'BUNDLE_SSL_CA_CERT', effect: 'replaces', servedBy: 'Bundler' },
];
