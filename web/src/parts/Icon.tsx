const PATHS: Record<string, string> = {
  find: "M7 12.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM11 11l3.5 3.5",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8 13 13M3 13l1.2-1.2M11.8 4.2 13 3",
  file: "M4 1.5h5.5L13 5v9.5H4zM9.5 1.5V5H13M6 8h5M6 11h5",
  warn: "M8 2 14.6 13.6H1.4ZM8 6.2v3.6M8 11.6v.2",
  check: "m2.8 8.6 3.4 3.4 7-7.6",
  cross: "m3.5 3.5 9 9M12.5 3.5l-9 9",
  plus: "M8 2.5v11M2.5 8h11",
  lock: "M4 7h8v6.5H4zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  clock: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 4.5V8l2.4 1.6",
  stop: "M4.5 4.5h7v7h-7z",
  bar: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM3.5 3.5l9 9",
  line: "M1.5 8h4M10.5 8h4M6 5.5 10 10.5",
  down: "M8 2v8.5M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
  solve: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
  jobs: "M2 4h12M2 8h8M2 12h11",
  compare: "M3.5 13.5v-5M8 13.5v-11M12.5 13.5v-8",
  workers: "M4 4h8v8H4zM6.5 6.5h3v3h-3zM6 1.5V4M10 1.5V4M6 12v2.5M10 12v2.5M1.5 6H4M1.5 10H4M12 6h2.5M12 10h2.5",
  docs: "M3 2h7.5L13 4.5V14H3zM5.5 7h5M5.5 10h5",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark: nine cells, three of them chosen, one in each row and column. */
export function Mark() {
  const cells = Array.from({ length: 9 }, (_, at) => ({
    x: (at % 3) * 7,
    y: Math.floor(at / 3) * 7,
    on: at === 1 || at === 3 || at === 8,
  }));
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      {cells.map(({ x, y, on }) => (
        <rect class={on ? "on" : "off"} x={x} y={y} width="6" height="6" rx="1.2" />
      ))}
    </svg>
  );
}
