/** Every query of the committed dashboard and rules. */

import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { ROOT } from './tools.ts';

interface PanelJson {
  readonly targets?: readonly { readonly expr: string }[];
  readonly panels?: readonly PanelJson[];
}

function queriesOf(panel: PanelJson): string[] {
  return [...(panel.targets ?? []).map(({ expr }) => expr), ...(panel.panels ?? []).flatMap(queriesOf)];
}

/** As Grafana would send them with every variable at *All*. */
export async function dashboardQueries(): Promise<string[]> {
  const dashboard = JSON.parse(await readFile(`${ROOT}deploy/monitoring/dashboard.json`, 'utf8')) as {
    panels: PanelJson[];
  };
  return dashboard.panels
    .flatMap(queriesOf)
    .map((query) =>
      query.replaceAll('$__rate_interval', '1m').replace(/\$(namespace|pod|credential|route)/g, '.*'),
    );
}

/** Of the marks on its time axis. */
export async function annotationQueries(): Promise<string[]> {
  const dashboard = JSON.parse(await readFile(`${ROOT}deploy/monitoring/dashboard.json`, 'utf8')) as {
    annotations: { list: readonly { expr: string }[] };
  };
  return dashboard.annotations.list.map(({ expr }) =>
    expr.replace(/\$(namespace|pod|credential|route)/g, '.*'),
  );
}

/** What its variables offer: `label_values(selector, label)`. */
export async function variableQueries(): Promise<string[]> {
  const dashboard = JSON.parse(await readFile(`${ROOT}deploy/monitoring/dashboard.json`, 'utf8')) as {
    templating: { list: readonly { query: string | { query: string } }[] };
  };
  return dashboard.templating.list.flatMap(({ query }) => {
    const text = typeof query === 'string' ? query : query.query;
    return text.includes('token_sidecar_') ? [text] : [];
  });
}

/** Of each selector of a query, the metric and the labels that it filters by. */
export function filtersOf(query: string): readonly { readonly metric: string; readonly label: string }[] {
  const withoutValues = query.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  return [...withoutValues.matchAll(/([a-zA-Z_:][\w:]*)\{([^}]*)\}/g)].flatMap(
    ([, metric = '', matchers = '']) =>
      [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => ({ metric, label })),
  );
}

export async function ruleQueries(): Promise<string[]> {
  const rules = parse(await readFile(`${ROOT}deploy/monitoring/rules.yaml`, 'utf8')) as {
    groups: { rules: { expr: string }[] }[];
  };
  return rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr));
}
