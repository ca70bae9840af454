/** The cases of connectconformance for servers: its client speaks to its server by way of the sidecar. */

import { describe, expect, it } from 'vitest';
import { volume } from '../../support/volume.ts';
import {
  ALL_COMPRESSIONS,
  ALL_PROTOCOLS,
  NO_COMPRESSION,
  PROTOCOLS_OF_HTTP1,
  runConnectConformance,
} from './connect-conformance.ts';
import { startReferenceServer } from './reference-server.ts';
import { identityFor, type Spoken, startSidecar } from './surroundings.ts';

/** The app speaks both versions of HTTP, whatever the server speaks. */
const VERSIONS = ['HTTP_VERSION_1', 'HTTP_VERSION_2'] as const;

/** With the number of its cases, of all compressions and of none. */
const SERVERS: readonly { readonly spoken: Spoken; readonly all: number; readonly none: number }[] = [
  { spoken: 'HTTP/1.1', all: 4028, none: 728 },
  { spoken: 'h2c', all: 5438, none: 1040 },
  { spoken: 'h2', all: 5438, none: 1040 },
];

/**
 * Left out of a server of HTTP/1.1: streams that flow both ways at once. Go's server reads a request to its end before it answers,
 * and such a call waits for an answer before its end. connectconformance itself has them over HTTP/2 alone.
 */
const NOT_OF_HTTP1 = [{ streamType: 'STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM' }];

const RUNS = volume(1, 5);

const LOADS = [
  { load: 'the usual number of calls at once', options: {}, compressed: true },
  {
    load: '32 calls at once',
    options: { flags: ['-p', '32'] },
    compressed: volume(0, 1) === 1,
  },
];

describe.each(SERVERS)('a server that speaks $spoken', ({ spoken, all, none }) => {
  describe.each(LOADS)('$load', ({ options, compressed }) => {
    it.each(Array.from({ length: RUNS }, (_, index) => index + 1))('run %i: every case passes', async () => {
      const identity = await identityFor(spoken);
      const isHttp1 = spoken === 'HTTP/1.1';
      const version = isHttp1 ? 'HTTP_VERSION_1' : 'HTTP_VERSION_2';
      const sidecar = await startSidecar(spoken, await startReferenceServer({ version, identity }), identity);
      const { output, ...outcome } = await runConnectConformance({
        mode: 'server',
        features: {
          versions: VERSIONS,
          protocols: isHttp1 ? PROTOCOLS_OF_HTTP1 : ALL_PROTOCOLS,
          compressions: compressed ? ALL_COMPRESSIONS : NO_COMPRESSION,
          supportsTls: false,
        },
        excludeCases: isHttp1 ? NOT_OF_HTTP1 : [],
        program: ['announce.ts', ...sidecar.address.split(':')],
        ...options,
      });
      expect(outcome, output).toEqual({ passed: compressed ? all : none, failed: [] });
    });
  });
});
