/** The programs of the HTTP/2 and gRPC tests: where `install.ts` puts them, and how clients and servers are started. */

import { join } from 'node:path';

export const CACHE = join(import.meta.dirname, '../../../.cache/grpc');

/** Programs compiled from Go: the tests' own `server` and `go`, and the tools that go.mod names. */
export const GO_PROGRAMS = join(CACHE, 'bin');
export const PYTHON_PACKAGES = join(CACHE, 'python');
export const JAVA_CLASSES = join(CACHE, 'java');

const CLIENTS_DIRECTORY = join(import.meta.dirname, 'clients');

export interface Program {
  /** Of the gRPC library that it is built on. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function inNode(file: string): Program {
  return { name: 'grpc-js', command: process.execPath, args: [join(CLIENTS_DIRECTORY, 'node', file)] };
}

function inPython(file: string): Program {
  return {
    name: 'grpcio (Python)',
    command: 'python3',
    args: [join(CLIENTS_DIRECTORY, 'python', file)],
    env: { PYTHONPATH: PYTHON_PACKAGES },
  };
}

/** Of `server/main.go`, which has the most to be asked for. */
export const GO_SERVER: Program = { name: 'grpc-go', command: join(GO_PROGRAMS, 'server'), args: [] };

/** Beside it. */
export const OTHER_SERVERS: readonly Program[] = [inNode('server.js'), inPython('server.py')];

/** Those that have a server of the same library beside them, and more commands. */
export const CLIENTS_WITH_SERVERS: readonly Program[] = [inNode('client.js'), inPython('client.py')];

export const CLIENTS: readonly Program[] = [
  { name: 'grpc-go', command: join(GO_PROGRAMS, 'go'), args: [] },
  ...CLIENTS_WITH_SERVERS,
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
