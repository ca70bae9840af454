/** The cases of connectconformance for clients: its server answers as real ones do and as broken ones do, by way of the sidecar. */

import { expect, it } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { volume } from '../../support/volume.ts';
import {
  ALL_COMPRESSIONS,
  ALL_PROTOCOLS,
  NO_COMPRESSION,
  PROTOCOLS_OF_HTTP1,
  runConnectConformance,
} from './connect-conformance.ts';
import { goProgram } from './programs.ts';
import { identityFor, type Spoken, startSidecar } from './surroundings.ts';

/** With the number of its cases, without compression and with all. */
const SERVERS: readonly { readonly spoken: Spoken; readonly daily: number; readonly whole: number }[] = [
  { spoken: 'HTTP/1.1', daily: 509, whole: 2523 },
  { spoken: 'HTTP/1.1 over TLS', daily: 433, whole: 2371 },
  { spoken: 'h2c', daily: 882, whole: 4244 },
  { spoken: 'h2', daily: 708, whole: 3896 },
];

it.each(SERVERS)('every case passes with a server that speaks $spoken', async ({ spoken, daily, whole }) => {
  const identity = await identityFor(spoken);
  const port = await freePort();
  const sidecar = await startSidecar(spoken, port, identity);
  const isHttp1 = spoken.startsWith('HTTP/1.1');
  const { output, ...outcome } = await runConnectConformance({
    mode: 'client',
    features: {
      versions: [isHttp1 ? 'HTTP_VERSION_1' : 'HTTP_VERSION_2'],
      protocols: isHttp1 ? PROTOCOLS_OF_HTTP1 : ALL_PROTOCOLS,
      compressions: volume(0, 1) === 1 ? ALL_COMPRESSIONS : NO_COMPRESSION,
      supportsTls: identity !== undefined,
    },
    // One way of speaking at a time: the sidecar is told which.
    excludeCases: identity === undefined ? [] : [{ useTls: false }],
    program: ['redirected-client.ts', goProgram('referenceclient'), ...sidecar.address.split(':')],
    flags: [
      `--port=${port}`,
      '--bind=127.0.0.1',
      ...(identity === undefined ? [] : [`--cert=${identity.cert}`, `--key=${identity.key}`]),
    ],
  });
  expect(outcome, output).toEqual({ passed: volume(daily, whole), failed: [] });
});
