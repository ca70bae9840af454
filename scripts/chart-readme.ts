/** The part of the chart's README that is generated: its lists of values, taken from their schema, and its version. */

interface Schema {
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Value {
  readonly key: string;
  readonly standard: string;
  readonly text: string;
}

interface SharedRow {
  readonly key: string;
  readonly of: readonly Value[];
  /** The members that have the key, unless all have it. */
  readonly owners: string;
  readonly shortly: string;
  readonly text: string;
}

/** Keys below several of `members` that mean the same are one item. */
interface Family {
  readonly title: string;
  readonly head: string;
  readonly prefix: string;
  readonly members: readonly string[];
}

const FAMILIES: readonly Family[] = [
  {
    title: 'Injector, issuer, broker and gateway',
    head: 'Write the component before the key: `injector.affinity`.',
    prefix: '',
    members: ['injector', 'issuer', 'broker', 'gateway'],
  },
  {
    title: 'Monitors, rules and dashboard',
    head: 'Write `monitoring.` and the object before the key: `monitoring.podMonitor.labels`.',
    prefix: 'monitoring.',
    members: ['podMonitor', 'serviceMonitor', 'prometheusRule', 'dashboard'],
  },
];

const SECTIONS: Readonly<Record<string, string>> = {
  sidecar: 'Sidecar defaults',
  injector: 'Injector',
  issuer: 'Issuer',
  broker: 'Broker',
  gateway: 'Gateway',
  monitoring: 'Monitoring',
  networkPolicy: 'Network policy',
};

/** A longer default is left to values.yaml, and so are the parts of a probe. */
const LONGEST_DEFAULT = 40;
const IN_VALUES = '…';

/** Keys of a family whose names say all, to who knows Kubernetes: listed below the others. */
const PLAIN = new Set(
  (
    'env envFrom resources revisionHistoryLimit podAnnotations podLabels affinity volumes volumeMounts extraContainers ' +
    'extraInitContainers readinessProbe livenessProbe hostAliases dnsConfig enableServiceLinks runtimeClassName schedulerName ' +
    'service.annotations serviceAccount.create serviceAccount.annotations annotations relabelings metricRelabelings ' +
    'logLevel nodeSelector tolerations priorityClassName certificates.helm.validityDays ' +
    'certificates.certManager.duration certificates.certManager.renewBefore autoscaling.minReplicas ' +
    'autoscaling.targetCPUUtilizationPercentage autoscaling.behavior autoscaling.requestsInFlight.metric'
  ).split(' '),
);

/**
 * @param readme as it is committed.
 * @param schema JSON of the values' schema, described.
 * @param version of the chart.
 * @returns the README with all that follows its heading "Values" and the versions in it written anew.
 */
export function chartReadme(readme: string, schema: string, version: string): string {
  const [prose = ''] = readme.split('\n## Values\n');
  const pinned = /(?<=^ {2}- name: token-sidecar\n {4}version: ).*$/m;
  if (!pinned.test(prose)) throw new Error('the README of the chart names no version of it');
  const current = prose.replace(pinned, version);
  return `${current}\n## Values\n\n${valuesLists(JSON.parse(schema) as Schema)}`;
}

function valuesLists(schema: Schema): string {
  const values = leavesOf(schema, '');
  const families = FAMILIES.map((family) => ({ ...family, rows: shared(values, family) }));
  const inFamilies = new Set(families.flatMap(({ rows }) => rows.flatMap(({ of }) => of)));
  const single = values.filter((value) => !inFamilies.has(value));
  const common = single.filter(({ key }) => !Object.keys(SECTIONS).some((section) => isBelow(key, section)));
  return [
    'Each with its default; `…` is a longer one, in [values.yaml](values.yaml).',
    list('Common', common.map(row)),
    ...families.map(({ title, head, rows }) =>
      [
        list(title, described(rows, ''), head),
        ...ownersOf(rows.filter((row) => !isPlain(row))).map(
          (owners) => `Of ${owners}:\n\n${described(rows, owners).join('\n')}`,
        ),
        `As their names say: ${named(rows, '')}.${ownersOf(rows.filter(isPlain))
          .map((owners) => ` Of ${owners}: ${named(rows, owners)}.`)
          .join('')}`,
      ].join('\n\n'),
    ),
    ...Object.entries(SECTIONS).map(([section, title]) =>
      list(title, single.filter(({ key }) => isBelow(key, section)).map(row)),
    ),
  ].join('\n\n');
}

function isPlain({ key }: SharedRow): boolean {
  return PLAIN.has(key);
}

function described(rows: readonly SharedRow[], by: string): string[] {
  return rows.filter((row) => row.owners === by && !isPlain(row)).map(({ text }) => text);
}

function named(rows: readonly SharedRow[], by: string): string {
  return rows
    .filter((row) => row.owners === by && isPlain(row))
    .map(({ shortly }) => shortly)
    .join(', ');
}

function ownersOf(rows: readonly SharedRow[]): string[] {
  return [...new Set(rows.map(({ owners }) => owners))].filter((owners) => owners !== '');
}

function isBelow(key: string, section: string): boolean {
  return key.startsWith(`${section}.`);
}

function leavesOf(schema: Schema, key: string): Value[] {
  const inner = Object.entries(schema.properties ?? {});
  if (key.endsWith('Probe')) return [{ key, standard: IN_VALUES, text: schema.description ?? '' }];
  if (schema.default !== undefined || inner.length === 0) {
    return [{ key, standard: shown(schema.default), text: schema.description ?? '' }];
  }
  return inner.flatMap(([name, below]) => leavesOf(below, key === '' ? name : `${key}.${name}`));
}

function shown(standard: unknown): string {
  const text = JSON.stringify(standard);
  return text.length > LONGEST_DEFAULT ? IN_VALUES : text;
}

/** The rows of a family, each with the values that it stands for. */
function shared(values: readonly Value[], { prefix, members }: Family): SharedRow[] {
  const groups = new Map<string, { member: string; value: Value }[]>();
  for (const value of values) {
    const member = members.find((name) => isBelow(value.key, `${prefix}${name}`));
    if (member === undefined) continue;
    const group = `${value.key.slice(prefix.length + member.length + 1)}\n${value.text}`;
    groups.set(group, [...(groups.get(group) ?? []), { member, value }]);
  }
  return [...groups]
    .filter(([, found]) => found.length > 1)
    .map(([group, found]) => {
      const [key = '', text = ''] = group.split('\n');
      const owners = found.length === members.length ? '' : found.map(({ member }) => member).join(', ');
      return {
        key,
        of: found.map(({ value }) => value),
        shortly: withDefaults(key, found),
        owners,
        text: `- ${withDefaults(key, found)}: ${text}`,
      };
    });
}

function withDefaults(
  key: string,
  found: readonly { readonly member: string; readonly value: Value }[],
): string {
  const [first] = found;
  if (first !== undefined && found.every(({ value }) => value.standard === first.value.standard)) {
    return setting(key, first.value.standard);
  }
  return `\`${key}\`, ${found.map(({ member, value }) => `${member} \`${value.standard}\``).join(', ')}`;
}

function setting(key: string, standard: string): string {
  return `\`${key}: ${standard}\``;
}

function row({ key, standard, text }: Value): string {
  return `- ${setting(key, standard)}: ${text}`;
}

function list(title: string, rows: readonly string[], head?: string): string {
  return [`### ${title}`, ...(head === undefined ? [] : [head]), rows.join('\n')].join('\n\n');
}
