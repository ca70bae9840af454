/** By which variables the runtimes of apps trust the authority of interception, and find the proxy that needs it. */

import { TRUST_VARIABLES, type TrustEffect } from '../../trust-variables.ts';
import { PROXY_PORT, TRUST_DIRECTORY } from './names.ts';
import type { LiteralVariable } from './pod.ts';

const FILES: Readonly<Record<TrustEffect, string>> = { adds: 'ca.crt', replaces: 'bundle.pem' };

/** By which a container's TLS comes to the sidecar. */
export function proxyVariables(): readonly LiteralVariable[] {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  return [
    { name: 'HTTPS_PROXY', value: proxy },
    { name: 'https_proxy', value: proxy },
    // Node heeds the others only so.
    { name: 'NODE_USE_ENV_PROXY', value: '1' },
  ];
}

/** By which a container trusts what it is shown there. */
export function trustVariables(): readonly LiteralVariable[] {
  return TRUST_VARIABLES.map(({ name, effect }) => ({ name, value: `${TRUST_DIRECTORY}/${FILES[effect]}` }));
}

/** The JVM heeds none of the others. It reads options of its own from here, and prints a line that it did. */
export const JAVA_OPTIONS = 'JAVA_TOOL_OPTIONS';

const TRUST_STORE = `-Djavax.net.ssl.trustStore=${TRUST_DIRECTORY}/truststore.p12`;
const TRUST_STORE_TYPE = '-Djavax.net.ssl.trustStoreType=PKCS12';

const PROXY_PROPERTIES = [
  '-Dhttp.proxyHost=127.0.0.1',
  `-Dhttp.proxyPort=${PROXY_PORT}`,
  '-Dhttps.proxyHost=127.0.0.1',
  `-Dhttps.proxyPort=${PROXY_PORT}`,
];

/** Whether options of the JVM say whom it trusts. */
export function namesTrustStore(options: string): boolean {
  return options.includes(nameOf(TRUST_STORE));
}

/** How the app's connections come to the sidecar. */
export type Way = 'by proxy' | 'as it is';

/**
 * The app's options and those that interception needs behind them; undefined where all are set, by the app or by a first pass.
 * Each that the app sets is its own.
 */
export function javaOptions(own: string, way: Way): string | undefined {
  // One store is of one type.
  const trust = namesTrustStore(own) ? [] : [TRUST_STORE, TRUST_STORE_TYPE];
  const proxy = way === 'by proxy' ? PROXY_PROPERTIES : [];
  const missing = [...trust, ...proxy.filter((property) => !own.includes(nameOf(property)))];
  if (missing.length === 0) return undefined;
  return [own, ...missing].filter((part) => part !== '').join(' ');
}

/** With its `=`. */
function nameOf(property: string): string {
  return property.slice(0, property.indexOf('=') + 1);
}
