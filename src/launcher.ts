#!/usr/bin/env node
/** Checks Node's version before it loads anything that an old Node cannot parse. Old versions can parse this file. */

import './platform/process/thread-pool.ts';

/** `tls.getCACertificates` came with 22.15 and 23.10. */
const NEEDED = '22.15, 23.10';

// By default SIGUSR1 opens Node's debugger, which reads all memory. Set before the rest loads, since a signal may come
// meanwhile.
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
