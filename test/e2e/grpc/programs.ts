/** The programs of the HTTP/2 and gRPC tests: where `install.ts` puts them, and how a client is started. */

import { join } from 'node:path';

export const CACHE = join(import.meta.dirname, '../../../.cache/grpc');

/** Programs compiled from Go: the tests' own `server` and `go`, and the tools that go.mod names. */
export const GO_PROGRAMS = join(CACHE, 'bin');
export const PYTHON_PACKAGES = join(CACHE, 'python');
export const JAVA_CLASSES = join(CACHE, 'java');

const CLIENTS_DIRECTORY = join(import.meta.dirname, 'clients');

export interface ClientProgram {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export const CLIENTS: readonly ClientProgram[] = [
  { name: 'grpc-go', command: join(GO_PROGRAMS, 'go'), args: [] },
  { name: 'grpc-js', command: process.execPath, args: [join(CLIENTS_DIRECTORY, 'node/client.js')] },
  {
    name: 'grpcio (Python)',
    command: 'python3',
    args: [join(CLIENTS_DIRECTORY, 'python/client.py')],
    env: { PYTHONPATH: PYTHON_PACKAGES },
  },
  {
    name: 'grpc-java',
    command: 'java',
    // Serial and half compiled: it lives for a second.
    args: [
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Dfile.encoding=UTF-8',
      '-Dstdout.encoding=UTF-8',
      '-cp',
      `${JAVA_CLASSES}:${JAVA_CLASSES}/*`,
      'Client',
    ],
  },
];
