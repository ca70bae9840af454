import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { startSidecar } from '../../src/sidecar/sidecar.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

/** A provider that gives one opaque token until its end, as WSO2 API Manager and Spring's old server do. */
async function startProvider(lifeMs: number, round: (seconds: number) => number) {
  const tokens: { readonly text: string; readonly endsAtMs: number; grants: number }[] = [];
  const provider = await ScriptedTokenEndpoint.start((response) => {
    const nowMs = performance.now();
    let token = tokens.at(-1);
    if (token === undefined || token.endsAtMs <= nowMs) {
      token = { text: `opaque-${tokens.length + 1}`, endsAtMs: nowMs + lifeMs, grants: 0 };
      tokens.push(token);
    }
    token.grants += 1;
    const expires_in = round((token.endsAtMs - nowMs) / 1000);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ access_token: token.text, token_type: 'Bearer', expires_in }));
  });
  return { provider, tokens };
}

/** A sidecar before an upstream that notes the tokens that come after their end. */
async function startSidecarFor({ provider, tokens }: Awaited<ReturnType<typeof startProvider>>) {
  const late: string[] = [];
  const upstream = createServer((request, response) => {
    const token = tokens.find(({ text }) => request.headers.authorization === `Bearer ${text}`);
    if (token === undefined || token.endsAtMs < performance.now()) late.push(`${token?.text}`);
    response.end();
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const secret = await mountSecret({ client_id: 'shop', client_secret: 's3cret' });
  const settings = {
    listen: '127.0.0.1:0',
    admin: { listen: '127.0.0.1:0' },
    credentials: [{ name: 'default', tokenUrl: provider.url, dir: secret.directory }],
    routes: [{ name: 'api', upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` }],
  };
  const path = await temporaryFile('token-sidecar.json', JSON.stringify(settings));
  const { log, lines } = captureLog();
  const config = await loadConfig({ config: { key: '--config', text: path } });
  const sidecar = await startSidecar({ config, log, quit: () => {} });
  onTestFinished(() => sidecar.stop());
  await sidecar.ready;
  return { sidecar, lines, late };
}

it('requests find a token through the lives of one that counts down, in seconds rounded down or up', async () => {
  await Promise.all(
    [Math.floor, Math.ceil].map(async (round) => {
      const counting = await startProvider(4000, round);
      const { tokens } = counting;
      const { sidecar, lines, late } = await startSidecarFor(counting);
      const answers: Promise<number>[] = [];
      while (tokens.length < 2) {
        answers.push(fetch(`http://${formatAddress(sidecar.proxyAddress)}/`).then(({ status }) => status));
        await pause(20);
      }
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
      expect(late).toEqual([]);
      for (const { grants } of tokens.slice(0, -1)) expect(grants).toBeLessThanOrEqual(6);
      expect(lines.filter((line) => (JSON.parse(line) as { level: string }).level === 'warn')).toEqual([]);
      const metrics = await (await fetch(`http://${formatAddress(sidecar.adminAddress)}/metrics`)).text();
      expect(metrics).not.toMatch(/token_refresh_total\{.*result="(?!success)/);
      expect(metrics).toMatch(/token_refresh_consecutive_failures\{[^}]*\} 0\n/);
    }),
  );
});
