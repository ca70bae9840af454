/** The variables that make the runtimes of apps trust the interception authority, and use the proxy that intercepts. */

import { TRUST_VARIABLES, type TrustEffect } from '../../platform/trust-variables.ts';
import { PROXY_PORT, TRUST_DIRECTORY } from './names.ts';
import type { LiteralVariable } from './pod.ts';

const FILES: Readonly<Record<TrustEffect, string>> = { adds: 'ca.crt', replaces: 'bundle.pem' };

/** The variables that bring a container's TLS to the sidecar. */
export function proxyVariables(): readonly LiteralVariable[] {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  return [
    { name: 'HTTPS_PROXY', value: proxy },
    { name: 'https_proxy', value: proxy },
    // Without it Node ignores the others.
    { name: 'NODE_USE_ENV_PROXY', value: '1' },
  ];
}

/** The variables that make a container trust the certificates shown there. */
export function trustVariables(): readonly LiteralVariable[] {
  return TRUST_VARIABLES.map(({ name, effect }) => ({ name, value: `${TRUST_DIRECTORY}/${FILES[effect]}` }));
}

/** The JVM ignores the variables above. It reads options of its own from this one, and prints a line about it. */
export const JAVA_OPTIONS = 'JAVA_TOOL_OPTIONS';

const TRUST_STORE = `-Djavax.net.ssl.trustStore=${TRUST_DIRECTORY}/truststore.p12`;
const TRUST_STORE_TYPE = '-Djavax.net.ssl.trustStoreType=PKCS12';

const PROXY_PROPERTIES = [
  '-Dhttp.proxyHost=127.0.0.1',
  `-Dhttp.proxyPort=${PROXY_PORT}`,
  '-Dhttps.proxyHost=127.0.0.1',
  `-Dhttps.proxyPort=${PROXY_PORT}`,
];

/** Whether JVM options name a trust store. */
export function namesTrustStore(options: string): boolean {
  return options.includes(nameOf(TRUST_STORE));
}

/** How the app's connections reach the sidecar. */
type Way = 'by proxy' | 'as it is';

/**
 * The app's options followed by those that interception needs; undefined if all are set, by the app or by a first pass.
 * An option that the app sets itself is left alone.
 */
export function javaOptions(own: string, way: Way): string | undefined {
  // A store and its type belong together.
  const trust = namesTrustStore(own) ? [] : [TRUST_STORE, TRUST_STORE_TYPE];
  const proxy = way === 'by proxy' ? PROXY_PROPERTIES : [];
  const missing = [...trust, ...proxy.filter((property) => !own.includes(nameOf(property)))];
  if (missing.length === 0) return undefined;
  return [own, ...missing].filter((part) => part !== '').join(' ');
}

/** Including its `=`. */
function nameOf(property: string): string {
  return property.slice(0, property.indexOf('=') + 1);
}
