/**
 * Brings the suites that others wrote into .cache/conformance, once for each state of what pins them, and prints how long it took. What
 * cannot be had is said and left out: the tests that need it then fail.
 */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';
import { CACHE, GO_PROGRAMS, JAVA_CLASSES } from './programs.ts';

const run = promisify(execFile);

const HERE = import.meta.dirname;
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

await Promise.all([
  installOnce({
    name: "others' suites, in Go",
    made: GO_PROGRAMS,
    sources: { directory: HERE, files: 'go.{mod,sum}' },
    install: () =>
      run('go', ['build', '-ldflags', '-s -w', '-o', `${GO_PROGRAMS}/`, 'tool'], {
        cwd: HERE,
        env: { ...process.env, CGO_ENABLED: '0' },
      }),
    stamp: join(CACHE, 'go.installed'),
  }),
  installOnce({
    name: "others' suites, in Java",
    made: JAVA_CLASSES,
    sources: { directory: HERE, files: 'java/pom.xml' },
    install: () =>
      run('mvn', ['--batch-mode', '--quiet', MAVEN_COPY, `-DoutputDirectory=${JAVA_CLASSES}`], {
        cwd: join(HERE, 'java'),
      }),
    stamp: join(CACHE, 'java.installed'),
  }),
]);
