import { STEPS, type StepDescription } from '../src/check/steps.ts';

const PARTS = [
  ['sidecar', 'The sidecar'],
  ['credential', 'Each credential'],
  ['upstream', 'Each upstream: routes, hosts of the forward proxy, captured and redirected hosts'],
  ['interception', 'Interception: as an app sees it'],
  ['running sidecar', 'A sidecar that runs (`--status`)'],
] as const satisfies readonly (readonly [StepDescription['of'], string])[];

/** The page of `check`. @param sample of its output. */
export function checkReference(generated: string, sample: string): string {
  const steps: readonly (readonly [string, StepDescription])[] = Object.entries(STEPS);
  const tables = PARTS.flatMap(([part, title]) => [
    `## ${title}`,
    '',
    '| step | looks at | warns | fails | `--offline` |',
    '|---|---|---|---|---|',
    ...steps
      .filter(([, { of }]) => of === part)
      .map(
        ([name, { title: shown, looks, warns, fails, offline }]) =>
          `| ${shown} (\`${name}\`) | ${looks} | ${warns ?? ''} | ${fails ?? ''} | ${offline === true ? 'yes' : ''} |`,
      ),
    '',
  ]);
  return [
    '# check: what it looks at',
    '',
    generated,
    '',
    '`token-sidecar check` goes the way of the sidecar a step at a time and says of each whether it is well and, if not, what to do. It changes',
    'nothing: it asks for one token of each credential, opens connections, and sends an upstream a request only where `--probe` gives a path.',
    'No token, secret or client id is in what it prints.',
    '',
    'Beside a running sidecar, with its settings and its network; addresses that the sidecar itself listens on are no failure there:',
    '',
    '    kubectl exec deploy/shop -c token-sidecar -- node /app/dist/token-sidecar.js check',
    '',
    'How the sidecar there is doing, without trying anything:',
    '',
    '    kubectl exec deploy/shop -c token-sidecar -- node /app/dist/token-sidecar.js check --status',
    '',
    'It ends with 0 where nothing fails, and else with the status of what is to be mended first: 78 configuration, 77 credentials rejected,',
    '69 provider or upstream unavailable. Warnings leave it at 0. What is wrong with a credential that has `required: false` is a warning.',
    '`--json` prints `{ "findings": [{ "step", "what", "verdict", "detail", "remedy"?, "failure"? }] }` with the verdicts `ok`, `warning` and',
    '`failure`; names of steps stay as they are from one version to the next. A configuration that cannot be used',
    'is reported so, too: a finding of `configuration` for each problem, without the value.',
    '',
    'Each name, connection and handshake has the bound of the sidecar itself (`timeouts.connect` of a route, `timeouts.request` of a',
    'credential), all steps together have `--check-timeout`, and answers are read up to a bound. Eight credentials, upstreams or intercepted hosts are looked at side by side.',
    '',
    '## What it prints',
    '',
    'Two credentials, one of them with a misspelt key and used by nothing; two routes, one of them with the wrong scheme; `--probe payments=/health`:',
    '',
    '```text',
    sample.trimEnd(),
    '```',
    '',
    ...tables,
  ].join('\n');
}
