import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { ConfigurationError } from '../../src/platform/problems.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';

const authority = createCertificateAuthority('servers');
const [own, other] = [authority.issue('gateway.test'), authority.issue('other.test')];

/** Keys of what is wrong with a gateway, and a route, that have these files. */
async function problemsOf(files: { readonly cert?: string; readonly key?: string; readonly ca?: string }) {
  const directory = await mkdtemp(join(tmpdir(), 'tls-files-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const { cert = own.cert, key = own.key, ca = authority.cert } = files;
  const path = (name: string) => join(directory, name);
  await Promise.all([
    writeFile(path('tls.crt'), cert),
    writeFile(path('tls.key'), key),
    writeFile(path('ca.crt'), ca),
  ]);
  const tls = { certFile: path('tls.crt'), keyFile: path('tls.key') };
  const text = JSON.stringify({
    credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token' }],
    routes: [{ name: 'api', upstream: 'https://api.test', tls }],
    gateway: {
      tls,
      clientCaFile: path('ca.crt'),
      callers: [{ name: 'web', match: { certificate: 'web.test' }, allowedRoutes: ['api'] }],
    },
  });
  return await loadConfig({ config: { key: '--config', text: '/file.yaml' } }, [], text).then(
    () => [],
    (error: ConfigurationError) => error.problems.map(({ key, expected }) => `${key}: ${expected}`),
  );
}

const NO_AUTHORITIES = (found: string) =>
  `gateway.clientCaFile: certificates of authorities, whose callers are let in, but ${found}`;
const KEY = 'a file with a PEM private key, not encrypted';

it.each<[string, Parameters<typeof problemsOf>[0], string[]]>([
  ['a pair and its authority', {}, []],
  [
    'a certificate in the place of the key',
    { key: own.cert },
    [`routes[0].tls.keyFile: ${KEY}`, `gateway.tls.keyFile: ${KEY}`],
  ],
  [
    'the key of another',
    { key: other.key },
    ['gateway.tls.keyFile: the private key of the certificate in certFile'],
  ],
  ['a CA that is none', { ca: own.cert }, [NO_AUTHORITIES('it holds a certificate that is not of a CA')]],
  [
    'a CA, and one that is none',
    { ca: `${authority.cert}${own.cert}` },
    [NO_AUTHORITIES('it holds a certificate that is not of a CA')],
  ],
  [
    'a CA, and one that was cut',
    { ca: `${authority.cert}${authority.cert.replace(/\n[^-\n]+\n/, '\n')}` },
    [NO_AUTHORITIES('it holds a PEM certificate that cannot be read')],
  ],
  ['nonsense for a CA', { ca: 'nonsense' }, [NO_AUTHORITIES('it holds no PEM certificate')]],
])('%s', async (_, files, expected) => {
  expect(await problemsOf(files)).toEqual(expected);
});
