import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startRefusing } from '../support/refusing-server.ts';
import { selfSigned } from '../wire/certificate.ts';
import { routeTo, startSidecar } from '../wire/sidecar.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

const UPLOADS = 100;
const APP = join(import.meta.dirname, 'uploading-app.ts');

const run = promisify(execFile);

type Version = 'http1' | 'h2';

/** How many of the uploads to an origin were answered as the upstream answers. */
async function answered(version: Version, origin: string, caFile?: string): Promise<number> {
  const args = [APP, version, origin, String(UPLOADS), ...(caFile === undefined ? [] : [caFile])];
  const { stdout } = await run(process.execPath, args);
  return (JSON.parse(stdout) as Record<string, number>)['413 too much'] ?? 0;
}

it.each<[Version, 'plain' | 'tls', Version]>([
  ['http1', 'plain', 'http1'],
  ['http1', 'tls', 'http1'],
  ['http1', 'plain', 'h2'],
  ['http1', 'tls', 'h2'],
  ['h2', 'plain', 'h2'],
  ['h2', 'tls', 'h2'],
  ['h2', 'plain', 'http1'],
  ['h2', 'tls', 'http1'],
])(
  'an upload by %s that its upstream (%s, %s) refuses and resets gets the answer, no less often than directly',
  async (app, transport, version) => {
    const certificate = transport === 'tls' ? selfSigned('127.0.0.1') : undefined;
    const caFile = certificate && (await temporaryFile('upstream-ca.crt', certificate.cert));
    const address = await startRefusing(version, certificate);
    const scheme = certificate === undefined ? ('http' as const) : ('https' as const);
    const http2 = scheme === 'https' ? ('h2' as const) : ('h2c' as const);
    const route = routeTo(
      { address, protocol: scheme, caFile },
      { protocol: version === 'h2' ? http2 : 'http1' },
    );
    const sidecar = await startSidecar({ routes: [route] });

    const directly = await answered(version, `${scheme}://127.0.0.1:${address.port}`, caFile);
    const through = await answered(app, `http://127.0.0.1:${sidecar.address.port}`);

    process.stdout.write(
      `${app} to ${version}, ${transport}: ${through} of ${UPLOADS}, directly ${directly}\n`,
    );
    expect(through).toBeGreaterThanOrEqual(directly);
  },
);
