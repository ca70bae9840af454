import { expect, it } from 'vitest';
import { startRefusing } from '../support/refusing-server.ts';
import { volume } from '../support/volume.ts';
import { loopbackCertificate } from './http2-upstream/node-upstream.ts';
import { request } from './messages.ts';
import { overTls } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const UPLOADS = volume(8, 20);

/** More than the upstream takes, and than the systems on the way keep. */
const UPLOAD = request('POST', '/', [], 'x'.repeat(20_000_000));

it.each(['http1', 'h2'] as const)(
  'an answer that an upstream of %s sent before resetting the upload reaches the app',
  async (version) => {
    const certificate = overTls ? await loopbackCertificate() : undefined;
    const address = await startRefusing(version, certificate);
    const http2 = overTls ? ('h2' as const) : ('h2c' as const);
    const sidecar = await startSidecar({
      upstream: { address, protocol: overTls ? 'https' : 'http', caFile: certificate?.caFile },
      route: { protocol: version === 'h2' ? http2 : 'http1' },
    });

    for (let upload = 0; upload < UPLOADS; upload++) {
      const client = await sidecar.connect();
      expect(await client.send(UPLOAD).response()).toMatchObject({ status: 413, body: 'too much' });
      client.destroy();
    }
  },
);
