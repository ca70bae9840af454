/** The output that docs/reference/check.md shows is that of the program. */

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, LookupFunction, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { checkAll } from '../../src/check/check-all.ts';
import { check } from '../../src/check/program.ts';
import { exitStatusOfFindings, formatJson, formatTable } from '../../src/check/report.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { freePort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { examination } from './examined.ts';

const authority = createCertificateAuthority('Example Root CA');
const SECRET = 'x3Jm0sQw9vLpZr7tYbNc';

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A realm whose tokens are for others than was asked for. */
function realm(issuer: () => string): RequestListener {
  return (request, response) => {
    const nowSeconds = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer(), aud: 'account', iat: nowSeconds, exp: nowSeconds + 302 };
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'none' })}.${part(claims)}.SIGNATURE`;
    const metadata = { issuer: issuer(), token_endpoint: `${issuer()}/protocol/openid-connect/token` };
    const grant = { access_token: token, token_type: 'Bearer', expires_in: 300, scope: 'read' };
    request
      .resume()
      .once('end', () => response.end(JSON.stringify(request.method === 'GET' ? metadata : grant)));
  };
}

const toLoopback: LookupFunction = (_name, options, callback) => {
  if (options.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};

it('is what the reference shows, and holds neither secret nor token', async () => {
  const tls = authority.issue('server', 'sso.example.com', 'api.example.com');
  let port = 0;
  port = await listening(
    createSecureServer(
      tls,
      realm(() => `https://sso.example.com:${port}/realms/shop`),
    ),
  );
  const api = await listening(
    createSecureServer(tls, (request, response) => {
      response.writeHead(request.headers.authorization === undefined ? 401 : 200).end();
    }),
  );
  const legacy = await listening(createServer());
  const shop = await mountSecret({ client_id: 'shop', client_secret: SECRET });
  const crm = await mountSecret({ 'client-id': 'crm', client_secret: SECRET });
  const [listen, admin] = [await freePort(), await freePort()];
  const directory = await mkdtemp(join(tmpdir(), 'sample-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const ca = join(directory, 'ca.crt');
  await writeFile(ca, authority.cert);
  const file = join(directory, 'token-sidecar.yaml');
  await writeFile(
    file,
    JSON.stringify({
      listen: `127.0.0.1:${listen}`,
      admin: { listen: `127.0.0.1:${admin}` },
      credentials: [
        {
          name: 'shop',
          issuerUrl: `https://sso.example.com:${port}/realms/shop`,
          dir: shop.directory,
          scope: 'read',
          audience: 'payments',
          tls: { caFile: ca },
        },
        { name: 'crm', tokenUrl: `https://sso.example.com:${port}/crm/token`, dir: crm.directory },
      ],
      routes: [
        {
          name: 'payments',
          match: { pathPrefix: '/payments/' },
          upstream: `https://api.example.com:${api}`,
          credential: 'shop',
          tls: { caFile: ca },
        },
        { name: 'legacy', upstream: `https://legacy.example.com:${legacy}`, credential: 'shop' },
      ],
    }),
  );
  const config = await loadConfig({ config: { key: '--config', text: file } });

  const findings = await checkAll(
    config,
    new Map([['payments', '/health']]),
    examination({ lookup: toLoopback }),
  );

  const table = formatTable(findings, { colour: false });
  const shown = table
    .replaceAll(`:${port}`, '')
    .replaceAll(`:${api}`, '')
    .replaceAll(`:${legacy}`, ':8443')
    .replaceAll(`:${listen}`, ':15080')
    .replaceAll(`:${admin}`, ':15081')
    .replaceAll(shop.directory, '/var/run/secrets/shop')
    .replaceAll(crm.directory, '/var/run/secrets/crm')
    .replaceAll(directory, '/etc/ca')
    .replace(/\b\d+ ms/g, '3 ms')
    .replace(/\b\d+ days left/g, '89 days left')
    .replaceAll('127.0.0.1 (3 ms)', '192.0.2.10 (3 ms)');
  await expect(shown).toMatchFileSnapshot('golden/sample.txt');
  expect(table + formatJson(findings)).not.toMatch(/SIGNATURE|eyJ|x3Jm0s/);
  expect(exitStatusOfFindings(findings)).toBe(78);
});

it('is run in a pod by the path that the image has', async () => {
  const dockerfile = await readFile(join(import.meta.dirname, '../../Dockerfile'), 'utf8');
  const [, path] = /^ENTRYPOINT \["node",.*"(\/[^"]+)"\]$/m.exec(dockerfile) ?? [];
  const inPods = check.examples.map(([line]) => line).filter((line) => line.startsWith('kubectl exec'));
  expect(inPods.length).toBeGreaterThan(0);
  for (const line of inPods) expect(line).toContain(`-- node ${path} check`);
});
