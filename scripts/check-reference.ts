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
  const lists = PARTS.flatMap(([part, title]) => [
    `## ${title}`,
    '',
    ...steps
      .filter(([, { of }]) => of === part)
      .map(
        ([name, { title: shown, looks, offline }]) =>
          `- ${shown} (\`${name}\`)${offline === true ? '\\*' : ''}: ${looks}`,
      ),
    '',
  ]);
  return [
    '# check: what it looks at',
    '',
    generated,
    '',
    '`token-sidecar check` tries each step of the sidecar, and says whether it works and, if not, what to do. It changes nothing, and prints no token or secret. It',
    'asks for one token of each credential (if tokens of requests are exchanged, with a made-up one) and opens connections. An upstream gets a request',
    'only if `--probe` gives a path; one that speaks HTTP/2 may get `OPTIONS *`.',
    'Flags: [command-line.md](command-line.md#check).',
    '',
    'Beside a running sidecar, with its settings:',
    '',
    '    kubectl exec deploy/shop -c token-sidecar -- node /app/dist/token-sidecar.js check',
    '',
    'How that sidecar is doing, without trying anything:',
    '',
    '    kubectl exec deploy/shop -c token-sidecar -- node /app/dist/token-sidecar.js check --status',
    '',
    'It ends with 0 if nothing fails, else with the status of what to mend first: 78 configuration, 77 credentials rejected, 69 provider or upstream',
    'unavailable. Warnings leave it at 0, as do failures of a credential with `required: false`.',
    '',
    '`--json` prints `{ "findings": [{ "step", "subject"?, "what", "verdict", "detail", "remedy"?, "failure"? }] }` with the verdicts `ok`, `warning` and',
    '`failure`. Names of steps do not change.',
    '',
    'Connections have the bounds of the sidecar, all steps together have `--check-timeout`. Steps with \\* run with `--offline` too.',
    '`token-sidecar explain STEP` says when a step warns or fails.',
    '',
    'For example, with `--probe payments=/health`, and without the lines that say `ok`. The word in brackets is for `explain`:',
    '',
    '```text',
    withoutOk(sample),
    '```',
    '',
    ...lists,
  ].join('\n');
}

/** Headings with nothing else are left out, too. */
function withoutOk(sample: string): string {
  const parts = sample.trimEnd().split('\n\n');
  const odd = parts.slice(0, -1).map((part) => part.split('\n').filter((line) => !line.startsWith('ok ')));
  const shown = odd.filter(({ length }) => length > 1).map((lines) => lines.join('\n'));
  return [...shown, parts.at(-1)].join('\n\n');
}
