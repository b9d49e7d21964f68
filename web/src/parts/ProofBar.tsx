import { proofPlace } from "../charts/bars";

const WIDTH = 150;

/** How far a proof has come: log, from 100% on the left to the best on the right. The words beside it say the same. */
export function ProofBar({ percent }: { percent: number | null }) {
  const at = 4 + proofPlace(percent) * (WIDTH - 12);
  return (
    <svg width={WIDTH} height="20" viewBox={`0 0 ${WIDTH} 20`} aria-hidden="true">
      <path class="rule" d={`M4 10.5H${WIDTH - 8}M${WIDTH - 7.5} 5V16`} />
      {[10, 1, 0.1].map((tick) => (
        <path class="rule" d={`M${Math.round(4 + proofPlace(tick) * (WIDTH - 12)) + 0.5} 7V14`} />
      ))}
      {percent !== null && (
        <>
          <path class="d-found" d={`M4 10.5H${at}`} />
          <circle class="f-accent" cx={at} cy="10.5" r="4" />
        </>
      )}
    </svg>
  );
}
