/** The effective configuration as it may be shown: nothing of it is a secret, and nothing that might be one is in it. */

import { withoutQuery } from '../../token/why-no-token.ts';

/**
 * Names of settings whose values are shown. The value of any other is left out, so that a setting that is added later
 * is hidden until somebody has thought of it: what a client is called, what it sends along, what it claims.
 */
const SHOWN: ReadonlySet<string> = new Set([
  ...[
    'listen',
    'host',
    'hosts',
    'port',
    'ports',
    'clearPorts',
    'address',
    'admin',
    'logLevel',
    'capture',
    'redirect',
  ],
  ...[
    'credentials',
    'name',
    'directory',
    'clientAuth',
    'method',
    'encoding',
    'grant',
    'type',
    'kind',
    'required',
  ],
  ...[
    'output',
    'file',
    'path',
    'mode',
    'group',
    'endpoint',
    'tokenType',
    'scope',
    'audience',
    'tls',
    'caFile',
  ],
  ...[
    'certFile',
    'keyFile',
    'serverName',
    'certificateFile',
    'tokenFile',
    'subjectTokenFile',
    'actorTokenFile',
  ],
  ...[
    'subjectTokenType',
    'actorTokenType',
    'requestedTokenType',
    'algorithm',
    'credentialsDirectory',
    'noProxy',
  ],
  ...['egressProxy', 'requestTimeoutMs', 'waitTimeoutMs', 'renewal', 'at', 'jitter', 'startupJitterMs'],
  ...[
    'minIntervalMs',
    'recoveryMs',
    'defaultLifetimeMs',
    'tokenUrl',
    'issuerUrl',
    'routes',
    'match',
    'pathPrefix',
  ],
  ...[
    'upstream',
    'protocol',
    'authority',
    'basePath',
    'stripPrefix',
    'credential',
    'inject',
    'into',
    'header',
  ],
  ...[
    'scheme',
    'existingAuthorization',
    'whenTokenUnavailable',
    'retryOn401',
    'timeouts',
    'connectMs',
    'responseMs',
  ],
  ...[
    'idleMs',
    'forwardProxy',
    'allow',
    'otherHosts',
    'connect',
    'upgradeToTls',
    'interception',
    'tokenEndpoint',
  ],
  ...[
    'crossSiteRequests',
    'limits',
    'headerBytes',
    'headerCount',
    'targetBytes',
    'requestBodyBytes',
    'replayBytes',
  ],
  ...['maxInFlight', 'maxConnections', 'headerTimeoutMs', 'keepAliveTimeoutMs', 'http2', 'maxStreams'],
  ...[
    'streamWindowBytes',
    'connectionWindowBytes',
    'shutdown',
    'drainTimeoutMs',
    'repositories',
    'permissions',
  ],
]);

/** In place of a value that is not shown. */
export const HIDDEN = '(set)';

/** Of an object of settings, those that may be shown, by their names. */
export function shownSettings(settings: unknown): unknown {
  if (Array.isArray(settings)) return settings.map(shownSettings);
  if (typeof settings === 'string') return shownText(settings);
  if (typeof settings !== 'object' || settings === null) return settings;
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, SHOWN.has(name) ? shownSettings(value) : HIDDEN]),
  );
}

/** URLs have neither user information nor a query. */
function shownText(text: string): string {
  return /^https?:/i.test(text) && URL.canParse(text) ? withoutQuery(text) : text;
}
