/** Where `install.ts` puts the programs of others' suites. */

import { join } from 'node:path';

export const CACHE = join(import.meta.dirname, '../../../.cache/conformance');

/** Those that go.mod names. */
export const GO_PROGRAMS = join(CACHE, 'bin');

/** What java/pom.xml names, with all that it needs. */
export const JAVA_CLASSES = join(CACHE, 'java');

export function goProgram(name: string): string {
  return join(GO_PROGRAMS, name);
}

/** The command of a program of grpc-java, by the name of its class. Serial and half compiled: it lives for a second. */
export function javaProgram(name: string): readonly [string, ...string[]] {
  const flags = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', `${JAVA_CLASSES}/*`];
  return ['java', ...flags, `io.grpc.testing.integration.${name}`];
}
