#!/usr/bin/env node
/**
 * Where the program begins: it checks Node's version before loading anything that an old Node cannot parse. Old
 * versions can parse this file.
 */

import './platform/process/thread-pool.ts';

/** `tls.getCACertificates` came with 22.15, and to the 23 line with 23.10. */
const NEEDED = '22.15, 23.10';

// By default Node would open its debugger, through which anyone who can connect reads all memory. Set before the rest
// loads, which takes long enough for a signal to arrive.
process.on('SIGUSR1', () => undefined);

const version = process.versions.node;
const [major = 0, minor = 0] = version.split('.').map(Number);

if (major > 23 || (major === 23 && minor >= 10) || (major === 22 && minor >= 15)) {
  await import('./main.ts');
} else {
  process.stderr.write(
    `token-sidecar: Node ${NEEDED} or later is needed, and this is ${version}: see https://nodejs.org\n`,
  );
  process.exitCode = 78;
}
