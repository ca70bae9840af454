import { LOG_LEVELS, ONE_OF_LOG_LEVELS } from '../platform/log/logger.ts';
import type { GivenValues, Settings } from './settings.ts';
import { ACCESS_LOGS, PROOFS_OF_POSSESSION, UPSTREAM_PROTOCOLS } from './values.ts';

/** Flags and environment of `proxy`. */
export const PROXY_SETTINGS = {
  'auth-url': {
    argument: 'URL',
    description:
      'Base URL of the identity provider; the token endpoint is {auth-url}/realms/{realm}/protocol/openid-connect/token',
  },
  realm: { argument: 'NAME', description: 'Realm name', default: 'dx' },
  'token-url': { argument: 'URL', description: 'URL of the token endpoint, instead of auth-url and realm' },
  'allow-insecure-token-url': {
    description: 'Allow http:// to a token endpoint on another host: the client secret travels in clear',
    default: 'false',
  },
  'credentials-dir': {
    argument: 'DIR',
    description: 'The mounted Secret: files client_id and client_secret',
    default: '/var/run/secrets/token-sidecar',
  },
  upstream: {
    argument: 'URL',
    description: 'Where requests go, with an optional base path; required unless routes are configured',
  },
  protocol: {
    argument: 'PROTOCOL',
    description: `Which version of HTTP is spoken to it: one of ${UPSTREAM_PROTOCOLS.join(', ')}`,
    words: UPSTREAM_PROTOCOLS,
    default: 'auto',
  },
  hosts: {
    argument: 'HOSTS',
    description:
      'HOST[:PORT] by commas, whose TLS is intercepted for apps with HTTPS_PROXY; other hosts pass untouched',
  },
  'capture-hosts': {
    argument: 'HOSTS',
    description:
      'HOST[:PORT]=ADDRESS by commas, such as api.example.com=127.0.0.2: what the hosts file sends to this address of loopback gets the token',
  },
  'redirect-hosts': {
    argument: 'HOSTS',
    description:
      'HOST[:PORT] by commas, that get the token on connections which `token-sidecar redirect` sends here; other hosts pass untouched',
  },
  'redirect-port': {
    argument: 'PORT',
    description: 'Where the sidecar listens on loopback for redirected connections',
    default: '15083',
  },
  'trust-dir': {
    argument: 'DIR',
    description: 'Where the certificates are that apps must trust for interception',
    default: '/var/run/token-sidecar/trust',
  },
  scope: { argument: 'SCOPE', description: 'Scope sent with the grant' },
  audience: { argument: 'AUDIENCE', description: 'Audience sent with the grant' },
  'proof-of-possession': {
    argument: 'KIND',
    description: `Bind tokens to a key of the process: one of ${PROOFS_OF_POSSESSION.join(', ')}`,
    words: PROOFS_OF_POSSESSION,
    default: 'none',
  },
  listen: {
    argument: 'HOST:PORT',
    description:
      'Where the app sends its requests; beyond loopback whoever reaches it uses the token; port 0 picks one',
    default: '127.0.0.1:15080',
  },
  'admin-listen': {
    argument: 'HOST:PORT',
    description: 'Probes, metrics, status page; [::] stands for every address, of IPv4 too',
    default: '[::]:15081',
  },
  'admin-hosts': {
    argument: 'HOSTS',
    description: 'Public names of the status page for browsers, by commas',
    default: 'none',
  },
  config: { argument: 'FILE', description: 'Configuration file, YAML or JSON' },
  'log-level': {
    argument: 'LEVEL',
    description: ONE_OF_LOG_LEVELS,
    words: LOG_LEVELS,
    default: 'info',
  },
  'access-log': {
    argument: 'REQUESTS',
    description: `Which requests are logged, at any log level: one of ${ACCESS_LOGS.join(', ')}`,
    words: ACCESS_LOGS,
    default: 'off',
  },
} as const satisfies Settings;

export type ProxyValues = GivenValues<typeof PROXY_SETTINGS>;
