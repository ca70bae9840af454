/** The effective configuration as it may be shown: without secrets, and without anything that might be one. */

import { shownUrl } from '../../platform/log/shown-text.ts';

/**
 * Names of settings whose values are shown. All others are left out, so that a setting added later is hidden until
 * somebody decides otherwise: a client's id, what it sends along, what it claims.
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
    'zeroLifetime',
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

/** Replaces a hidden value. */
export const HIDDEN = '(set)';

/** The settings of an object that may be shown, by name. */
export function shownSettings(settings: unknown): unknown {
  if (Array.isArray(settings)) return settings.map(shownSettings);
  if (typeof settings === 'string') return shownText(settings);
  if (typeof settings !== 'object' || settings === null) return settings;
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, SHOWN.has(name) ? shownSettings(value) : HIDDEN]),
  );
}

/** URLs without what may be secret in them. */
function shownText(text: string): string {
  return /^https?:/i.test(text) && URL.canParse(text) ? shownUrl(text) : text;
}
