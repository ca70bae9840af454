/** The status page as somebody sees it who is woken: each state in a real Chromium, without a complaint of axe. */

import { describe, expect, it } from 'vitest';
import { answer, answerToken } from '../support/scripted-token-endpoint.ts';
import { expectAccessible, openPage, picture, useChromium } from './chromium.ts';
import { startWorld, type World } from './world.ts';

const TWO_HOURS_MS = 7_200_000;
const MINUTE_MS = 60_000;

useChromium();

const callBoth = (world: World) => async () => {
  await world.call('/payments/orders', 30);
  await world.call('/payments/orders/1', 120);
  await world.call('/mail/', 8);
};

describe('states', () => {
  it('all is well', async () => {
    const world = await startWorld();
    await world.pass(TWO_HOURS_MS - 10 * MINUTE_MS);
    await world.pass(10 * MINUTE_MS, callBoth(world));
    const { page, complaints } = await openPage(world.url);
    await expect(page.title()).resolves.toBe('✔ shop-7d4b9c8f5-x2x9p · payments · node-1 – token-sidecar');
    expect(await page.locator('#verdict').innerText()).toContain(
      'All is well: each of 2 credentials has a token.',
    );
    expect(await page.locator('#credential-payments svg.timeline').getAttribute('aria-label')).toMatch(
      /^Grants of the last two hours: 3\d succeeded, 0 failed$/,
    );
    const route = await page.locator('#route-payments').innerText();
    expect(route).toMatch(/0\.2, at most 0\.2/);
    expect(route).toMatch(/2xx 1\d\d/);
    expect(await page.locator('#route-payments svg.spark').count()).toBe(4);
    await expectAccessible(page);
    await picture(page, 'ok', true);
    await page.emulateMedia({ colorScheme: 'dark' });
    await picture(page, 'dark');
    expect(complaints).toEqual([]);
  });

  it('rejected credentials: what fails, since when, what to do and what is next, before all else', async () => {
    const world = await startWorld();
    await world.pass(30 * MINUTE_MS);
    world.providers.payments.script = answer(401, JSON.stringify({ error: 'invalid_client' }));
    await world.pass(20 * MINUTE_MS);
    const { page, complaints } = await openPage(world.url);
    const verdict = page.locator('#verdict');
    const text = await verdict.innerText();
    expect(text).toMatch(/Credential payments has had no token for 1\d min\./);
    expect(text).toMatch(/rejected the client \(status 401 invalid_client\)\. Compare the Secret/);
    expect(await page.locator('#route-payments h3').innerText()).toContain(
      'waits for its credential payments',
    );
    expect(text).toMatch(/Requests that need it get 503; the sidecar asks again in \d+ (s|min)\./);
    expect(await verdict.getByRole('link').getAttribute('href')).toMatch(
      /docs\/runbooks\/TokenSidecarCredentialsRejected\.md$/,
    );
    expect(await verdict.locator('time').first().getAttribute('title')).toMatch(
      /^since 2030-01-01 \d\d:\d\d:\d\d UTC$/,
    );
    expect(await page.locator('article h3').first().innerText()).toContain('payments');
    expect(await page.locator('#icon').getAttribute('href')).toContain('%23cf222e');
    expect(await page.title()).toMatch(/^✖ /);
    await expectAccessible(page);
    await picture(page, 'failing');
    expect(complaints).toEqual([]);
  });

  it('no first token yet: what the pod waits for', async () => {
    const world = await startWorld({}, ({ payments }) => {
      payments.script = answer(503, 'away');
    });
    await world.pass(MINUTE_MS);
    const { page } = await openPage(world.url);
    expect(await page.locator('#verdict').innerText()).toMatch(
      /Credential payments has had no token for \d+ s\.[\s\S]*503[\s\S]*the sidecar asks again in \d+ s\./,
    );
    expect(await page.title()).toMatch(/^✖ /);
    await expectAccessible(page);
    await picture(page, 'starting');
  });

  it('a Secret that cannot be used', async () => {
    const world = await startWorld();
    await world.pass(MINUTE_MS);
    await world.mountSecret({ client_id: 'shop' });
    await world.pass(5 * MINUTE_MS);
    const { page } = await openPage(world.url);
    expect(await page.locator('#verdict').innerText()).toMatch(
      /The mounted Secret of credential (payments|mail) has been unusable for \d+ min\.\s+.*client_secret does not exist\. Mend the Secret/,
    );
    expect(await page.title()).not.toMatch(/^✔ /);
    await expectAccessible(page);
    await picture(page, 'secret-unusable');
  });

  it('a Secret that the provider rejects, and the one before it in use: one sentence since the first refusal', async () => {
    const world = await startWorld();
    await world.pass(MINUTE_MS);
    const wrong = `Basic ${Buffer.from('shop:wrong').toString('base64')}`;
    for (const provider of Object.values(world.providers)) {
      const [give, refuse] = [provider.script, answer(401, JSON.stringify({ error: 'invalid_client' }))];
      provider.script = (response, request) =>
        (request.headers.authorization === wrong ? refuse : give)(response, request);
    }
    await world.mountSecret({ client_id: 'shop', client_secret: 'wrong' });
    const { page } = await openPage(world.url);
    for (let minutes = 10; minutes <= 30; minutes += 10) {
      await world.pass(10 * MINUTE_MS);
      await page.reload();
      expect(await page.locator('#verdict').innerText()).toMatch(
        new RegExp(
          `The mounted Secret of credential \\w+ has been rejected for ${minutes} min\\.\\s+http:\\S+ rejected the client \\(status 401 invalid_client\\)\\. Compare .*\\s+Requests get tokens by the previous one, while the provider takes it\\.`,
        ),
      );
    }
    expect(await page.locator('#route-payments h3').innerText()).toContain('is well');
    await expectAccessible(page);
    await picture(page, 'secret-rejected');
  });

  it('a provider that is away while a token is in hand', async () => {
    const world = await startWorld();
    await world.pass(10 * MINUTE_MS);
    world.providers.mail.script = answer(503, 'away');
    await world.pass(4 * MINUTE_MS);
    const { page } = await openPage(world.url);
    expect(await page.locator('#verdict').innerText()).toMatch(
      /Credential mail has had no new token for \d+ (s|min)\.[\s\S]*token in hand, which ends in \d+ s\./,
    );
    expect(await page.locator('#icon').getAttribute('href')).toContain('%23d4a72c');
    await expectAccessible(page);
    await picture(page, 'renewal-failing');
  });

  it('an upstream that fails, with its codes', async () => {
    const world = await startWorld();
    await world.pass(5 * MINUTE_MS, callBoth(world));
    world.upstreamAnswers((request) => request.socket.destroy());
    await world.pass(2 * MINUTE_MS, callBoth(world));
    const { page } = await openPage(world.url);
    expect(await page.locator('#verdict').innerText()).toMatch(
      /Route payments has failed for 2 min\.\s+12 of 12 requests of the last minute failed \(upstream_\w+ 12\)\./,
    );
    expect(await page.locator('#route-payments').innerText()).toMatch(/upstream_\w+ \d+/);
    await expectAccessible(page);
    await picture(page, 'upstream-failing');
  });

  it('an upstream that refuses tokens', async () => {
    const world = await startWorld();
    world.upstreamAnswers((_, response) => response.writeHead(401).end());
    await world.pass(MINUTE_MS, callBoth(world));
    const { page } = await openPage(world.url);
    expect(await page.locator('#verdict').innerText()).toMatch(
      /has refused tokens for \d+ s\.\s+It answered a token with 401 \d+ times in \d+ requests/,
    );
    await expectAccessible(page);
    await picture(page, 'tokens-refused');
  });

  it('an upstream that refuses the proofs of bound tokens', async () => {
    const world = await startWorld(
      {},
      ({ payments }) => {
        payments.script = answerToken({ token_type: 'DPoP' });
      },
      { proofOfPossession: 'dpop' },
    );
    world.upstreamAnswers((_, response) => {
      response.writeHead(401, { 'www-authenticate': 'DPoP error="invalid_dpop_proof"' }).end();
    });
    await world.pass(MINUTE_MS, callBoth(world));
    const { page, complaints } = await openPage(world.url, { viewport: { width: 360, height: 800 } });
    expect(await page.locator('#verdict').innerText()).toMatch(
      /An upstream refuses the proofs of credential payments\.[\s\S]*TokenSidecarProofsRefused/,
    );
    const card = page.locator('#credential-payments');
    expect(await card.innerText()).toMatch(
      /Proof of possession \(DPoP\)\s+own key of this process, [\w-]{43}\s+Proofs made\s+13\s+Proofs refused\s+12/,
    );
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    await expectAccessible(page);
    expect(complaints).toEqual([]);
  });

  it('hosts of the forward proxy, and those that are refused', async () => {
    const world = await startWorld({
      forwardProxy: {
        allow: [
          { host: 'api.example.com', credential: 'payments' },
          { host: '*.internal.example.com', credential: 'mail' },
        ],
      },
    });
    const { request } = await import('node:http');
    const { host, port } = world.sidecar.proxyAddress;
    await new Promise<void>((resolve, reject) => {
      const asked = request(
        { host, port, path: 'http://evil.example.com/', headers: { host: 'evil.example.com' }, agent: false },
        (response) => {
          response.resume().once('end', resolve);
        },
      );
      asked.once('error', reject);
      asked.end();
    });
    const { page } = await openPage(world.url);
    const hosts = page.getByRole('region', { name: 'Hosts of the forward proxy' });
    expect(await hosts.innerText()).toMatch(/api\.example\.com[\s\S]*\*\.internal\.example\.com/);
    expect(await hosts.innerText()).toMatch(/evil\.example\.com: once/);
    await expectAccessible(page);
    await picture(page, 'forward-proxy');
  });

  it('on a narrow screen nothing is cut off or scrolls sideways', async () => {
    const world = await startWorld();
    await world.pass(MINUTE_MS, callBoth(world));
    const { page } = await openPage(world.url, { viewport: { width: 360, height: 740 } });
    await page.locator('summary', { hasText: 'Latest grants of payments' }).click();
    await page.locator('summary', { hasText: 'Effective configuration' }).click();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
    await expectAccessible(page);
    await page.reload();
    await picture(page, 'narrow');
  });

  it('without JavaScript it is a snapshot that says so, and its forms work', async () => {
    const world = await startWorld();
    const { page } = await openPage(world.url, { javaScriptEnabled: false });
    expect(await page.locator('main').innerText()).toContain('This is a snapshot');
    await picture(page, 'snapshot');
    const before = world.providers.mail.received.length;
    await page.getByRole('button', { name: 'Ask for a new token now for credential mail' }).click();
    await world.providers.mail.requests(before + 1);
    expect(page.url()).toBe(world.url);
    await page.getByRole('button', { name: 'debug', exact: true }).click();
    await page.waitForLoadState();
    expect(page.url()).toBe(world.url);
    expect(await page.getByRole('button', { name: 'debug', exact: true }).getAttribute('aria-pressed')).toBe(
      'true',
    );
  });
});

describe('a page that stays open', () => {
  it('follows what happens, and tells it aloud once', async () => {
    const world = await startWorld();
    const { page, complaints } = await openPage(world.url);
    expect(await page.locator('#announced').innerText()).toBe('');
    world.providers.payments.script = answer(503, 'away');
    await world.pass(10 * MINUTE_MS);
    await page.locator('#verdict.failing').waitFor();
    expect(await page.title()).toMatch(/^✖ /);
    expect(await page.locator('#icon').getAttribute('href')).toContain('%23cf222e');
    expect(await page.locator('#announced').textContent()).toMatch(/^Credential payments has had no token$/);
    world.providers.payments.script = answerToken();
    await world.pass(5 * MINUTE_MS);
    await page.locator('#verdict.ok').waitFor();
    expect(complaints).toEqual([]);
  });

  it('leaves alone what somebody selects, has opened or stands on', async () => {
    const world = await startWorld();
    const { page } = await openPage(world.url);
    await page.locator('#configuration summary').focus();
    await page.keyboard.press('Enter');
    await page.evaluate(
      `getSelection().selectAllChildren(document.querySelector('#credential-payments dl'))`,
    );
    const selected = await page.evaluate('String(getSelection())');
    await world.pass(MINUTE_MS);
    await page.locator('#paused:not([hidden])').waitFor();
    expect(await page.evaluate('String(getSelection())')).toBe(selected);
    await page.evaluate('getSelection().removeAllRanges()');
    await page.locator('#paused[hidden]').waitFor({ state: 'attached' });
    expect(await page.locator('#configuration').getAttribute('open')).toBe('');
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Effective configuration');
  });

  it('asks for a token and changes the log level by keyboard, and says what came of it', async () => {
    const world = await startWorld();
    const { page, complaints } = await openPage(world.url);
    const before = world.providers.payments.received.length;
    await page.getByRole('button', { name: 'Ask for a new token now for credential payments' }).focus();
    await page.keyboard.press('Enter');
    await world.providers.payments.requests(before + 1);
    await page.getByText('A token is being asked for, for credential payments.').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('was asked for moments ago').waitFor();
    await page.getByRole('button', { name: 'trace', exact: true }).press('Space');
    await page.getByText('The log level is trace until the next start.').waitFor();
    await page.locator('button[aria-pressed=true]', { hasText: 'trace' }).waitFor();
    await expectAccessible(page);
    expect(complaints).toEqual([]);
  });

  it('every control is reached by Tab, and shows that it is', async () => {
    const world = await startWorld();
    const { page } = await openPage(world.url);
    const controls = (await page.evaluate(`document.querySelectorAll('a,button,summary').length`)) as number;
    for (let reached = 0; reached < controls; reached++) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    }
    expect(await page.evaluate('document.activeElement.textContent')).toBe('About this page');
  });
});
