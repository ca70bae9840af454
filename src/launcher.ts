#!/usr/bin/env node
/**
 * Where the program begins: it looks at Node's version before anything is loaded that an older one cannot read. It is
 * written so that old ones can read it.
 */

/** `tls.getCACertificates` came with the first, and into the line of 23 with the second. */
const NEEDED = '22.15, 23.10';

// Node would open its debugger, through which whoever may connect reads all memory. Loading the rest takes long enough for
// a signal to come.
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
