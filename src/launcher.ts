#!/usr/bin/env node
/**
 * Where the program begins: it looks at Node's version before anything is loaded that an older one cannot read. It is
 * written so that old ones can read it.
 */

const OLDEST = { major: 22, minor: 15 };

const version = process.versions.node;
const [major = 0, minor = 0] = version.split('.').map(Number);

if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) {
  await import('./main.ts');
} else {
  const needed = `${OLDEST.major}.${OLDEST.minor}`;
  process.stderr.write(
    `token-sidecar: Node ${needed} or later is needed, and this is ${version}: see https://nodejs.org\n`,
  );
  process.exitCode = 78;
}
